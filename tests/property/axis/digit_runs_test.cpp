// Runs of digits of random affine expressions, by enumeration: no value is taken twice, and the expression is its offset
// and the runs' dense numbers times their strides, each number within its count. Dense numbers over different axes are equal
// once one is solved for the other's.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "axis/linear.h"
#include "sym/eval.h"

#undef CHECK  // doctest has its own
#include <doctest/doctest.h>

namespace kerf::axis {
namespace {

using sym::Expr;

TEST_CASE("digit_runs") {
  std::mt19937 engine(5);
  auto pick = [&](int bound) { return static_cast<int64_t>(engine() % static_cast<unsigned>(bound)); };
  int found = 0;
  for (int round = 0; round < 4000; ++round) {
    sym::Context context;
    sym::Facts facts;
    std::vector<AxisInfo> axes;
    Expr expr = context.constant(pick(3));
    std::vector<int64_t> extents;
    for (int k = 0; k < 3; ++k) {
      extents.push_back(1 + pick(4));
      axes.push_back(
          {context.symbol("a" + std::to_string(k), sym::SymbolKind::axis), context.constant(extents.back())});
      facts.set_extent(axes.back().symbol, axes.back().extent);
      expr = expr + axes.back().symbol * context.constant(pick(14));
    }
    std::optional<DigitRuns> runs = digit_runs(expr, axes, facts);
    std::multiset<int64_t> values;
    bool uses_all = true;
    for (int k = 0; k < 3; ++k)
      uses_all = uses_all && (extents[k] == 1 || sym::mentions(expr, axes[k].symbol));
    for (int64_t point = 0; point < extents[0] * extents[1] * extents[2]; ++point) {
      int64_t at[] = {point / (extents[1] * extents[2]), point / extents[2] % extents[1], point % extents[2]};
      auto value_of = [&](Expr e) {
        return sym::evaluate(e, [&](const sym::Symbol& symbol) { return at[symbol.name.back() - '0']; })
            .value();
      };
      values.insert(value_of(expr));
      if (!runs) continue;
      int64_t sum = value_of(runs->offset);
      for (const DigitRun& run : runs->runs) {
        int64_t number = value_of(run_value(run, axes));
        REQUIRE(number < run.count.constant());
        sum += run.stride.constant() * number;
      }
      REQUIRE(sum == value_of(expr));
    }
    if (!runs) continue;
    ++found;
    int64_t count = 1;
    for (const DigitRun& run : runs->runs) count *= run.count.constant();
    std::set<int64_t> distinct(values.begin(), values.end());
    REQUIRE(static_cast<int64_t>(distinct.size()) == count);
    if (uses_all) REQUIRE(distinct.size() == values.size());
  }
  REQUIRE(found > 500);
}

// A number of 2^5 * 3^2 values in random factors, slow to fast.
std::vector<AxisInfo> random_factors(sym::Context& context, std::mt19937& engine, const std::string& prefix) {
  std::vector<int64_t> factors = {2, 2, 2, 2, 2, 3, 3};
  std::shuffle(factors.begin(), factors.end(), engine);
  std::vector<AxisInfo> axes;
  for (size_t at = 0; at < factors.size();) {
    int64_t extent = factors[at++];
    while (at < factors.size() && engine() % 2) extent *= factors[at++];
    axes.push_back({context.symbol(prefix + std::to_string(axes.size()), sym::SymbolKind::axis),
                    context.constant(extent)});
  }
  return axes;
}

TEST_CASE("match_digits") {
  std::mt19937 engine(7);
  int direct = 0;
  for (int round = 0; round < 300; ++round) {
    sym::Context context;
    sym::Facts facts;
    std::vector<AxisInfo> axes = random_factors(context, engine, "n"),
                          others = random_factors(context, engine, "r");
    for (const AxisInfo& axis : others) facts.set_extent(axis.symbol, axis.extent);
    Expr dense = row_major(context, axes), other = row_major(context, others);
    auto digits = dense_digits(dense, axes, facts), other_digits = dense_digits(other, others, facts);
    REQUIRE(digits.has_value());
    REQUIRE(other_digits.has_value());
    std::vector<sym::Substitution> map = match_digits(*digits, axes, *other_digits, others, facts);
    REQUIRE(map.size() == axes.size());
    for (const sym::Substitution& s : map) direct += s.to.is_symbol();
    Expr moved = sym::substitute(dense, map);
    for (int64_t point = 0; point < 288; ++point) {
      std::map<std::string, int64_t> at;
      int64_t rest = point;
      for (size_t k = others.size(); k-- > 0; rest /= others[k].extent.constant())
        at[others[k].symbol.symbol().name] = rest % others[k].extent.constant();
      REQUIRE(sym::evaluate(moved, [&](const sym::Symbol& symbol) { return at.at(symbol.name); }) == point);
    }
  }
  REQUIRE(direct > 100);
}

}  // namespace
}  // namespace kerf::axis
