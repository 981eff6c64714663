#include "sym/facts.h"

#include <algorithm>

#include "sym/analysis.h"
#include "sym/integers.h"

namespace kerf::sym {

void Facts::set_extent(Expr symbol, Expr extent) {
  CHECK(!mentions(extent, symbol), "the extent of '{}' mentions it", symbol.symbol().name);
  symbols_[symbol.node()].extent = extent;
}

Range Facts::range(Expr symbol) const {
  auto at = symbols_.find(symbol.node());
  if (at == symbols_.end()) return {};
  Range range = at->second.range;
  if (at->second.extent.valid()) {
    range.lo = std::max<int64_t>(range.lo.value_or(0), 0);
    std::optional<int64_t> extent = range_of(at->second.extent, *this).hi;
    if (extent && *extent != kMinInt) range.hi = std::min(range.hi.value_or(*extent - 1), *extent - 1);
  }
  return range;
}

std::optional<Expr> Facts::extent(Expr symbol) const {
  auto at = symbols_.find(symbol.node());
  if (at == symbols_.end() || !at->second.extent.valid()) return std::nullopt;
  return at->second.extent;
}

Modulus Facts::modulus(Expr symbol) const {
  auto at = symbols_.find(symbol.node());
  return at == symbols_.end() ? Modulus{} : at->second.modulus;
}

Range range_of(Expr expr, const Facts& facts) { return Analysis(facts).range(expr); }
Modulus modulus_of(Expr expr, const Facts& facts) { return Analysis(facts).modulus(expr); }

}  // namespace kerf::sym
