// Splitting a dividend into digits, the common part of the rules for quotients and remainders.
//
// Worked example, e = 128*p0 + p1 + 5 with p1 < 100 and the divisor 1024: the terms 128*p0 propose g = 128;
// what 128 does not divide, p1 + 5, stays below it. So e // 1024 = (128*p0) // 1024 = p0 // 8.
#include <algorithm>
#include <functional>

#include "sym/eval.h"
#include "sym/integers.h"
#include "sym/products.h"
#include "sym/rules.h"
#include "sym/simplify.h"

namespace kerf::sym {

namespace {

using Steps = InlineVector<int64_t, 32>;

// The step of a term within a constant divisor: the largest divisor g of it with a known term % g.
int64_t step_of(Expr term, int64_t divisor, Analysis& known) {
  return gcd_int(known.modulus(term).modulus, divisor);
}

// Each term's step, and the common steps of the terms with the largest ones; largest first.
void propose_steps(Expr dividend, int64_t divisor, Analysis& known, Steps& out) {
  Steps single;
  for (size_t i = 0; i < term_count(dividend); ++i) {
    Expr term = term_at(dividend, i);
    if (!term.is_constant()) single.push_back(step_of(term, divisor, known));
  }
  std::sort(single.begin(), single.end(), std::greater<>());
  int64_t common = 0;
  for (int64_t step : single) {
    out.push_back(step);
    common = gcd_int(common, step);
    out.push_back(common);
  }
  std::sort(out.begin(), out.end(), std::greater<>());
  out.truncate(static_cast<size_t>(std::unique(out.begin(), out.end()) - out.begin()));
}

// The split for one constant g. Terms with a known residue modulo g count as multiples, their residue as a
// part of the small rest; constants are divided between both.
std::optional<DigitSplit> split_at(Expr dividend, int64_t step, int64_t divisor, Analysis& known) {
  Context& context = dividend.context();
  InlineVector<Expr, 16> multiple, small;
  Wide residue = 0, constant = 0;
  for (size_t i = 0; i < term_count(dividend); ++i) {
    Expr term = term_at(dividend, i);
    if (term.is_constant()) {
      constant += term.constant();
    } else if (step_of(term, divisor, known) % step == 0) {
      multiple.push_back(term);
      residue += mod_int(known.modulus(term).remainder, step);
    } else {
      small.push_back(term);
    }
  }
  Expr rest = add(context, small.span());
  Range range = known.range(rest);
  if (!range.lo || !range.hi) return std::nullopt;
  // rest + offset must stay within one step; `base` is where that step begins.
  Wide offset = constant + residue;
  if (!fits(offset) || !fits(*range.lo + offset) || !fits(*range.hi + offset)) return std::nullopt;
  int64_t lo = floor_div_int(static_cast<int64_t>(*range.lo + offset), step);
  int64_t hi = floor_div_int(static_cast<int64_t>(*range.hi + offset), step);
  Wide base = static_cast<Wide>(lo) * step - residue;
  if (lo != hi || !fits(base) || !fits(constant - base)) return std::nullopt;
  Expr lower = rest + static_cast<int64_t>(constant - base);
  if (lower.is_constant(0)) return std::nullopt;
  return DigitSplit{add(context, multiple.span()) + static_cast<int64_t>(base), lower};
}

std::optional<DigitSplit> split_constant(Expr dividend, int64_t divisor, Analysis& known) {
  Steps steps;
  propose_steps(dividend, divisor, known, steps);
  for (int64_t step : steps) {
    if (step <= 1) break;
    if (std::optional<DigitSplit> split = split_at(dividend, step, divisor, known)) return split;
  }
  return std::nullopt;
}

// g is a product common to the divisor and a term: n for (n*j + k) // (n*m).
std::optional<DigitSplit> split_symbolic(Expr dividend, Expr divisor, Analysis& known) {
  Context& context = dividend.context();
  NodeMap<bool> tried;
  for (size_t i = 0; i < term_count(dividend); ++i) {
    Expr step = gcd_product(term_at(dividend, i), divisor);
    if (step.is_constant(1) || tried.find(step) || !known.positive_divisor(step)) continue;
    tried.set(step, true);
    InlineVector<Expr, 16> multiple, small;
    for (size_t k = 0; k < term_count(dividend); ++k) {
      Expr term = term_at(dividend, k);
      (known.divides(step, term) ? multiple : small).push_back(term);
    }
    if (small.empty()) continue;
    Expr rest = add(context, small.span());
    if (known.non_negative(rest) && known.less(rest, step))
      return DigitSplit{add(context, multiple.span()), rest};
  }
  return std::nullopt;
}

}  // namespace

std::optional<DigitSplit> split_digits(Expr dividend, Expr divisor, Analysis& known) {
  if (term_count(dividend) < 2 || term_count(dividend) > kMaxWidth) return std::nullopt;
  if (divisor.is_constant()) return split_constant(dividend, divisor.constant(), known);
  if (divisor.kind() == Kind::add) return std::nullopt;
  return split_symbolic(dividend, divisor, known);
}

std::optional<Expr> reversed_of(Expr dividend, Expr divisor) {
  if (!divisor.is_constant()) return std::nullopt;
  bool reversed = false;
  for (size_t i = 0; i < term_count(dividend); ++i) {
    Expr term = term_at(dividend, i);
    if (term.is_constant()) {
      reversed = term.constant() == divisor.constant() - 1;
    } else if (coefficient_of(term) > 0) {
      return std::nullopt;
    }
  }
  if (!reversed) return std::nullopt;
  return neg(dividend - (divisor.constant() - 1));
}

std::optional<Expr> of_two_values(Expr dividend, Expr divisor, int64_t (*value)(int64_t, int64_t),
                                  Analysis& known) {
  if (!divisor.is_constant() || divisor.constant() <= 0 || term_count(dividend) > 2) return std::nullopt;
  Expr symbol;
  Wide coefficient = 0, constant = 0;
  for (size_t i = 0; i < term_count(dividend); ++i) {
    Expr term = term_at(dividend, i);
    if (term.is_constant()) {
      constant = term.constant();
    } else if (symbol.valid() || !rest_of(term).is_symbol()) {
      return std::nullopt;
    } else {
      symbol = rest_of(term);
      coefficient = coefficient_of(term);
    }
  }
  if (!symbol.valid()) return std::nullopt;
  Range range = known.range(symbol);
  if (!range.lo || !range.hi || static_cast<Wide>(*range.hi) - *range.lo != 1) return std::nullopt;
  Wide first = coefficient * *range.lo + constant, second = first + coefficient;
  if (!fits(first) || !fits(second)) return std::nullopt;
  int64_t low = value(static_cast<int64_t>(first), divisor.constant());
  Wide step = static_cast<Wide>(value(static_cast<int64_t>(second), divisor.constant())) - low;
  Wide base = low - step * *range.lo;
  if (!fits(step) || !fits(base)) return std::nullopt;
  return mul(dividend.context().constant(static_cast<int64_t>(step)), symbol) + static_cast<int64_t>(base);
}

}  // namespace kerf::sym
