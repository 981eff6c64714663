// Canonical axes of random domains, checked by enumeration: every point of the old domain is visited once, affine accesses
// are affine, and neither the order of accesses nor equivalent spellings change the axes.
#include "axis/canonical.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "axis/linear.h"
#include "sym/eval.h"
#include "sym/simplify.h"
#include "sym/text.h"

#undef CHECK  // doctest has its own
#include <doctest/doctest.h>

namespace kerf::axis {
namespace {

using sym::Expr;

struct RandomDomain {
  std::vector<DomainAxis> axes;
  std::vector<DomainAccess> accesses;
};

RandomDomain random_domain(sym::Context& context, std::mt19937& random) {
  auto pick = [&](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  RandomDomain domain;
  int count = 1 + pick(2);
  for (int k = 0; k < count; ++k) {
    static constexpr int64_t kExtents[] = {1, 5, 6, 8, 12, 24, 48};
    int64_t extent = kExtents[pick(std::size(kExtents))];
    Expr symbol = context.symbol("p" + std::to_string(k), sym::SymbolKind::axis);
    bool reduced = pick(4) == 0;
    domain.axes.push_back({symbol, context.constant(extent), reduced ? 1u : 0u, reduced});
  }
  // What a kernel computes is stored, so every kept point matters; otherwise unused axes would be dropped.
  Expr position = context.constant(0);
  for (const DomainAxis& axis : domain.axes)
    if (!axis.keep_unused) position = position * axis.extent + axis.symbol;
  domain.accesses.push_back({position, 2, true});
  int accesses = 1 + pick(3);
  for (int a = 0; a < accesses; ++a) {
    Expr index = context.constant(0);
    for (const DomainAxis& axis : domain.axes) {
      static constexpr int64_t kDivisors[] = {2, 3, 4, 6, 12};
      Expr term = axis.symbol;
      if (pick(2)) term = sym::floor_div(term, kDivisors[pick(5)]);
      if (pick(2)) term = sym::mod(term, kDivisors[pick(5)]);
      if (pick(4)) index = index + term * static_cast<int64_t>(1 + pick(7));
    }
    domain.accesses.push_back({index, 1 + pick(3), pick(2) == 0});
  }
  return domain;
}

Canonical canonical_of(const RandomDomain& domain, sym::Context& context, bool guards) {
  int counter = 0;
  return canonicalize(domain.axes, domain.accesses, {},
                      [&] { return context.symbol("n" + std::to_string(counter++), sym::SymbolKind::axis); },
                      {.allow_guards = guards});
}

int64_t value_at(Expr expr, const std::vector<std::pair<Expr, int64_t>>& point) {
  auto value = sym::evaluate(expr, [&](const sym::Symbol& symbol) {
    for (const auto& [axis, v] : point)
      if (&axis.symbol() == &symbol) return v;
    return int64_t{0};
  });
  REQUIRE(value.has_value());
  return *value;
}

// Calls `visit` with every point of the axes.
template <class Visit>
void enumerate(const std::vector<DomainAxis>& axes, Visit visit) {
  std::vector<std::pair<Expr, int64_t>> point;
  for (const DomainAxis& axis : axes) point.emplace_back(axis.symbol, 0);
  for (const DomainAxis& axis : axes)
    if (axis.extent.constant() == 0) return;
  while (true) {
    visit(point);
    size_t k = point.size();
    while (k > 0 && ++point[k - 1].second == axes[k - 1].extent.constant()) point[--k].second = 0;
    if (k == 0) return;
  }
}

std::string text_of(const RandomDomain& domain) {
  std::string text;
  for (const DomainAxis& axis : domain.axes)
    text += sym::to_text(axis.symbol) + " < " + sym::to_text(axis.extent) +
            (axis.keep_unused ? " reduce\n" : "\n");
  for (const DomainAccess& access : domain.accesses) text += "  " + sym::to_text(access.index) + "\n";
  return text;
}

void check_domain(const RandomDomain& domain, sym::Context& context, bool guards) {
  INFO(text_of(domain));
  Canonical canonical = canonical_of(domain, context, guards);
  std::multiset<std::vector<int64_t>> expected, actual;
  enumerate(domain.axes, [&](const auto& point) {
    std::vector<int64_t> row;
    for (const DomainAccess& access : domain.accesses) row.push_back(value_at(access.index, point));
    expected.insert(row);
  });
  enumerate(canonical.axes, [&](const auto& point) {
    for (const DomainGuard& guard : canonical.guards)
      if (value_at(guard.value, point) >= guard.bound.constant()) return;
    std::vector<int64_t> row;
    for (const DomainAccess& access : domain.accesses)
      row.push_back(value_at(sym::substitute(access.index, canonical.map), point));
    actual.insert(row);
  });
  CHECK(expected == actual);

  std::vector<AxisInfo> infos;
  for (const DomainAxis& axis : canonical.axes) infos.push_back({axis.symbol, axis.extent});
  sym::Facts facts;
  for (const DomainAxis& axis : domain.axes) facts.set_extent(axis.symbol, axis.extent);
  for (const DomainAxis& axis : canonical.axes) facts.set_extent(axis.symbol, axis.extent);
  for (size_t k = 0; k < domain.accesses.size(); ++k) {
    Expr known = sym::simplify(domain.accesses[k].index, facts);
    Expr index = sym::simplify(sym::substitute(known, canonical.map), facts);
    bool derived = std::ranges::find(canonical.derived, k) != canonical.derived.end();
    CHECK(linear_form(index, infos).has_value() == !derived);
  }
}

TEST_CASE("every point once, affine where a chain exists") {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    sym::Context context;
    std::mt19937 random(seed);
    RandomDomain domain = random_domain(context, random);
    INFO("seed ", seed);
    check_domain(domain, context, seed % 2 == 0);
  }
}

TEST_CASE("the order of accesses does not matter") {
  for (unsigned seed = 0; seed < 500; ++seed) {
    sym::Context context;
    std::mt19937 random(seed);
    RandomDomain domain = random_domain(context, random);
    INFO("seed ", seed, "\n", text_of(domain));
    Canonical before = canonical_of(domain, context, true);
    RandomDomain shuffled = domain;
    std::ranges::reverse(shuffled.accesses);
    Canonical after = canonical_of(shuffled, context, true);
    REQUIRE(before.axes.size() == after.axes.size());
    for (size_t k = 0; k < before.axes.size(); ++k) CHECK(before.axes[k].extent == after.axes[k].extent);
  }
}

TEST_CASE("thousands of accesses are one pass") {
  sym::Context context;
  Expr p = context.symbol("p", sym::SymbolKind::axis);
  RandomDomain domain;
  domain.axes.push_back({p, context.constant(int64_t{1} << 20), 0, false});
  for (int64_t k = 0; k < 5000; ++k)
    domain.accesses.push_back({sym::floor_div(p, int64_t{1} << (k % 10)) + k, 1, k % 2 == 0});
  Canonical canonical = canonical_of(domain, context, true);
  CHECK(canonical.derived.empty());
  CHECK(canonical.axes.size() == 10);
}

}  // namespace
}  // namespace kerf::axis
