#include "codegen/triton/index_form.h"

#include <algorithm>

namespace kerf::triton {

namespace {

__extension__ using Wide = __int128;

// Near the end is at the end: what is not known stays so when something is taken from it.
int64_t clamp(Wide value) {
  constexpr int64_t kNear = Range::kUnbounded / 4;
  if (value > kNear) return Range::kUnbounded;
  if (value < -kNear) return -Range::kUnbounded;
  return static_cast<int64_t>(value);
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

}  // namespace

Range operator+(Range a, Range b) { return {clamp(Wide{a.low} + b.low), clamp(Wide{a.high} + b.high)}; }

Range operator-(Range a, Range b) { return {clamp(Wide{a.low} - b.high), clamp(Wide{a.high} - b.low)}; }

Range operator*(Range a, Range b) {
  auto [low, high] =
      std::minmax({Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low, Wide{a.high} * b.high});
  return {clamp(low), clamp(high)};
}

Range floor_div(Range a, Range b) {
  if (b.low <= 0) return {};
  auto ends = {floor_div(a.low, b.low), floor_div(a.low, b.high), floor_div(a.high, b.low),
               floor_div(a.high, b.high)};
  Range result{std::min(ends), std::max(ends)};
  if (a.low <= -Range::kUnbounded) result.low = -Range::kUnbounded;
  if (a.high >= Range::kUnbounded) result.high = Range::kUnbounded;
  return result;
}

Range ceil_div(Range a, Range b) { return floor_div(a + b - Range{1, 1}, b); }

Range modulo(Range a, Range b) {
  if (b.low <= 0) return {};
  if (a.low >= 0 && a.high < b.low) return a;
  if (a.is_point() && b.is_point()) {
    int64_t value = a.low - floor_div(a.low, b.low) * b.low;
    return {value, value};
  }
  return {0, a.low >= 0 ? std::min(a.high, b.high - 1) : b.high - 1};
}

Range smaller(Range a, Range b) { return {std::min(a.low, b.low), std::min(a.high, b.high)}; }
Range larger(Range a, Range b) { return {std::max(a.low, b.low), std::max(a.high, b.high)}; }
Range hull(Range a, Range b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

int64_t IndexForm::factor(SymbolId symbol) const {
  auto found = std::ranges::find(terms, symbol, &Term::symbol);
  return found == terms.end() ? 0 : found->factor;
}

IndexForm scale(const IndexForm& a, int64_t factor) {
  if (factor == 0) return {};
  IndexForm result = a;
  result.constant = clamp(Wide{a.constant} * factor);
  for (Term& term : result.terms) term.factor = clamp(Wide{term.factor} * factor);
  return result;
}

IndexForm add(const IndexForm& a, const IndexForm& b, int64_t factor_of_b) {
  if (!a.is_affine || !b.is_affine) return not_affine();
  IndexForm result = a;
  result.is_exact = a.is_exact && b.is_exact;
  result.constant = clamp(Wide{a.constant} + Wide{b.constant} * factor_of_b);
  for (const Term& term : b.terms) {
    auto at = std::ranges::lower_bound(result.terms, term.symbol, {}, &Term::symbol);
    if (at == result.terms.end() || at->symbol != term.symbol)
      at = result.terms.insert(at, {term.symbol, 0, false});
    at->factor = clamp(Wide{at->factor} + Wide{term.factor} * factor_of_b);
    at->is_symbolic |= term.is_symbolic;
  }
  std::erase_if(result.terms, [](const Term& term) { return term.factor == 0 && !term.is_symbolic; });
  return result;
}

}  // namespace kerf::triton
