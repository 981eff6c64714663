// Quotients.
//   range     e // a                 ->  k              when k*a <= e < (k+1)*a, a symbolic divisor included
//   digits    (128*p0 + p1) // 1024  ->  p0 // 8        p1 < 128
//   reversal  (127 - p) // 128       ->  -(p // 128)    the builder has taken multiples out
//   two       (h + 1) // 2           ->  h              h < 2
//   nested    (x // a) // b          ->  x // (a*b)     symbolic b > 0; the builder does constants
//   digit     (x % (a*b)) // a       ->  (x // a) % b
#include "sym/eval.h"
#include "sym/products.h"
#include "sym/rules.h"

namespace kerf::sym {

namespace {

std::optional<Expr> quotient_by_range(Expr dividend, Expr divisor, Analysis& known) {
  Context& context = dividend.context();
  Range range = known.range(dividend);
  if (divisor.is_constant()) return std::nullopt;  // the range of the quotient has told already
  if (range.lo.value_or(-1) >= 0 && known.less(dividend, divisor)) return context.constant(0);
  if (range.hi.value_or(0) < 0 && known.non_negative(dividend + divisor)) return context.constant(-1);
  return std::nullopt;
}

}  // namespace

Expr rewrite_floor_div(Expr expr, Simplifier& simplifier) {
  Analysis& known = simplifier.known();
  Expr dividend = expr.operand(0), divisor = expr.operand(1);
  if (std::optional<Expr> quotient = quotient_by_range(dividend, divisor, known)) return *quotient;
  if (!known.positive_divisor(divisor)) return expr;

  if (std::optional<DigitSplit> split = split_digits(dividend, divisor, known))
    return floor_div(split->multiple, divisor);
  if (std::optional<Expr> reversed = reversed_of(dividend, divisor))
    return neg(floor_div(*reversed, divisor));
  if (std::optional<Expr> affine = of_two_values(dividend, divisor, floor_div_int, known)) return *affine;
  if (dividend.kind() == Kind::floor_div) {
    Expr product = mul(dividend.operand(1), divisor);
    if (!product.node()->as_written) return floor_div(dividend.operand(0), product);
  }
  if (dividend.kind() == Kind::mod && divisor.kind() != Kind::add) {
    std::optional<Expr> digits = divide_product(dividend.operand(1), divisor);
    if (digits && known.positive_divisor(*digits))
      return mod(floor_div(dividend.operand(0), divisor), *digits);
  }
  return expr;
}

}  // namespace kerf::sym
