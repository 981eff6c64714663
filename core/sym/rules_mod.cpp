// Remainders.
//   range     e % a                 ->  e - k*a              when k*a <= e < (k+1)*a, symbolic divisors included
//   digits    (128*p0 + p1) % 1024  ->  128*(p0 % 8) + p1    p1 < 128
//   reversal  (127 - p) % 128       ->  127 - p % 128
//   two       (h + 1) % 2           ->  1 - h               h < 2
//   nested    (x % m) % a           ->  x % a                a provably divides m; the builder does constants
#include "sym/eval.h"
#include "sym/products.h"
#include "sym/rules.h"

namespace kerf::sym {

namespace {

std::optional<Expr> remainder_by_range(Expr dividend, Expr divisor, Analysis& known) {
  Range range = known.range(dividend);
  if (divisor.is_constant()) {
    int64_t step = divisor.constant();
    if (step <= 0 || !range.lo || !range.hi) return std::nullopt;
    int64_t count = floor_div_int(*range.lo, step);
    if (count != floor_div_int(*range.hi, step)) return std::nullopt;
    return dividend - mul(dividend.context().constant(count), divisor);
  }
  if (range.lo.value_or(-1) >= 0 && known.less(dividend, divisor)) return dividend;
  if (range.hi.value_or(0) < 0 && known.non_negative(dividend + divisor)) return dividend + divisor;
  return std::nullopt;
}

}  // namespace

Expr rewrite_mod(Expr expr, Simplifier& simplifier) {
  Analysis& known = simplifier.known();
  Expr dividend = expr.operand(0), divisor = expr.operand(1);
  if (known.divides(divisor, dividend)) return expr.context().constant(0);
  if (std::optional<Expr> remainder = remainder_by_range(dividend, divisor, known)) return *remainder;
  if (dividend.kind() == Kind::mod && known.divides(divisor, dividend.operand(1)))
    return mod(dividend.operand(0), divisor);
  if (!known.positive_divisor(divisor)) return expr;

  if (std::optional<DigitSplit> split = split_digits(dividend, divisor, known))
    return mod(split->multiple, divisor) + split->small;
  if (std::optional<Expr> reversed = reversed_of(dividend, divisor))
    return divisor - 1 - mod(*reversed, divisor);
  if (std::optional<Expr> affine = of_two_values(dividend, divisor, mod_int, known)) return *affine;
  return expr;
}

}  // namespace kerf::sym
