// Runs of digits of random affine expressions, by enumeration: no value is taken twice, and the expression is its offset
// and the runs' dense numbers times their strides, each number within its count.
#include <algorithm>
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

}  // namespace
}  // namespace kerf::axis
