// Builders of quotients and remainders. What they fold holds over all integers (divisor non-zero):
//
//   (130*p + q + 300) // 128   ->  p + (2*p + q + 44) // 128 + 2     multiples of the divisor leave
//   (4*p + 6) // 16            ->  (p + 1) // 4                      common factors cancel
//   (x // a) // b              ->  x // (a*b)            b a positive constant
//   (c*(x % m) + y) % a        ->  (c*x + y) % a         a divides c*m
//   x // -a                    ->  -x // a               constant divisors end up positive
#include "sym/eval.h"
#include "sym/integers.h"
#include "sym/products.h"

namespace kerf::sym {

namespace {

// dividend = divisor * quotient + remainder, for all integers.
struct Split {
  Expr quotient;
  Expr remainder;
};

// Takes from each term the largest multiple of the divisor (towards zero, so that -p stays -p; the constant
// rounds down). The divisor is not a sum.
Split split_terms(Expr dividend, Expr divisor) {
  Context& context = dividend.context();
  InlineVector<Expr, 16> quotient, remainder;
  int64_t unit = coefficient_of(divisor);
  // Multiples of the minimum would only push other constants out of int64.
  if (unit == kMinInt) return {context.constant(0), dividend};
  Expr base = rest_of(divisor);
  for (size_t i = 0; i < term_count(dividend); ++i) {
    Expr term = term_at(dividend, i);
    int64_t coefficient = coefficient_of(term);
    std::optional<Expr> over = divide_product(rest_of(term), base);
    bool foldable = over && unit != 0 && !(unit == -1 && coefficient == kMinInt);
    if (!foldable) {
      remainder.push_back(term);
      continue;
    }
    bool round_down = term.is_constant() && divisor.is_constant();
    int64_t count = round_down ? floor_div_int(coefficient, unit) : coefficient / unit;
    int64_t left = round_down ? mod_int(coefficient, unit) : coefficient % unit;
    if (count != 0) quotient.push_back(make_term(count, *over));
    if (left != 0) remainder.push_back(make_term(left, rest_of(term)));
  }
  if (quotient.empty()) return {context.constant(0), dividend};
  return {add(context, quotient.span()), add(context, remainder.span())};
}

// Division by a sum takes a multiple only where that shortens the dividend: (n*i + i) // (n + 1) is i.
Split split_by_sum(Expr dividend, Expr divisor) {
  Split split{dividend.context().constant(0), dividend};
  Expr lead = divisor.operand(0);
  for (size_t i = 0; i < term_count(split.remainder);) {
    std::optional<Expr> multiple = divide_product(term_at(split.remainder, i), lead);
    Expr left = multiple ? sub(split.remainder, mul(*multiple, divisor)) : Expr();
    if (multiple && (left.is_constant(0) || term_count(left) < term_count(split.remainder))) {
      split = {add(split.quotient, *multiple), left};
      i = 0;
    } else {
      ++i;
    }
  }
  return split;
}

Split split_multiples(Expr dividend, Expr divisor) {
  return divisor.kind() == Kind::add ? split_by_sum(dividend, divisor) : split_terms(dividend, divisor);
}

// dividend = factor * scaled + offset and divisor = factor * reduced, with 0 <= offset < factor.
struct Scaled {
  Expr factor;
  Expr scaled;
  int64_t offset;
  Expr reduced;
};

// The divisor is not a sum. Unless it is a positive constant, the offset is 0: its sign would decide how an
// offset rounds.
std::optional<Scaled> cancel_common_factor(Expr dividend, Expr divisor) {
  if (dividend.is_constant()) return std::nullopt;
  Context& context = dividend.context();
  bool may_offset = divisor.is_constant() && divisor.constant() > 0;
  Expr factor = divisor;
  for (size_t i = 0; i < term_count(dividend) && !factor.is_constant(1); ++i) {
    Expr term = term_at(dividend, i);
    if (!(term.is_constant() && may_offset)) factor = gcd_product(term, factor);
  }
  if (factor.is_constant(1)) return std::nullopt;
  int64_t offset = 0;
  InlineVector<Expr, 16> scaled;
  for (size_t i = 0; i < term_count(dividend); ++i) {
    Expr term = term_at(dividend, i);
    if (term.is_constant() && may_offset) {
      offset = mod_int(term.constant(), factor.constant());
      scaled.push_back(context.constant(floor_div_int(term.constant(), factor.constant())));
    } else {
      scaled.push_back(*divide_product(term, factor));
    }
  }
  return Scaled{factor, add(context, scaled.span()), offset, *divide_product(divisor, factor)};
}

bool is_negative_divisor(Expr divisor) {
  return divisor.is_constant() && divisor.constant() < 0 && divisor.constant() != kMinInt;
}

// term with (x % m) replaced by x, where the divisor divides the factor before it times m; else term.
Expr drop_inner_mod(Expr term, Expr divisor) {
  Factors factors;
  factors_of(term, factors);
  for (Expr factor : factors) {
    if (factor.kind() != Kind::mod) continue;
    Expr before = without_factor(term, factor);
    Expr step = mul(before, factor.operand(1));
    if (step.kind() == Kind::add) continue;
    if (divide_product(step, divisor)) return mul(before, factor.operand(0));
  }
  return term;
}

Expr drop_inner_mods(Expr dividend, Expr divisor) {
  bool changed = false;
  InlineVector<Expr, 16> terms;
  for (size_t i = 0; i < term_count(dividend); ++i) {
    Expr term = term_at(dividend, i);
    terms.push_back(drop_inner_mod(term, divisor));
    changed |= !(terms[i] == term);
  }
  return changed ? add(dividend.context(), terms.span()) : dividend;
}

}  // namespace

Expr floor_div(Expr a, Expr b) {
  CHECK(&a.context() == &b.context(), "operands of two contexts");
  CHECK(!b.is_constant(0), "division by zero");
  Context& context = a.context();
  if (b.is_constant(1) || a.is_constant(0)) return a;
  if (a == b) return context.constant(1);
  bool overflows = a.is_constant(kMinInt) && b.is_constant(-1);
  if (a.is_constant() && b.is_constant() && !overflows)
    return context.constant(floor_div_int(a.constant(), b.constant()));
  if (is_negative_divisor(b)) return floor_div(neg(a), neg(b));

  Split split = split_multiples(a, b);
  if (!split.quotient.is_constant(0)) return add(split.quotient, floor_div(split.remainder, b));
  if (b.kind() != Kind::add)
    if (std::optional<Scaled> cancelled = cancel_common_factor(a, b))
      return floor_div(cancelled->scaled, cancelled->reduced);
  if (a.kind() == Kind::floor_div && b.is_constant() && b.constant() > 0) {
    Expr divisor = mul(a.operand(1), b);
    if (!divisor.node()->as_written) return floor_div(a.operand(0), divisor);
  }
  Expr operands[] = {a, b};
  return context.intern(Kind::floor_div, operands);
}

Expr mod(Expr a, Expr b) {
  CHECK(&a.context() == &b.context(), "operands of two contexts");
  CHECK(!b.is_constant(0), "remainder of a division by zero");
  Context& context = a.context();
  if (b.is_constant(1) || a == b) return context.constant(0);
  if (a.is_constant(0)) return a;
  if (a.is_constant() && b.is_constant()) return context.constant(mod_int(a.constant(), b.constant()));
  if (is_negative_divisor(b)) return neg(mod(neg(a), neg(b)));

  Split split = split_multiples(a, b);
  if (!split.quotient.is_constant(0)) return mod(split.remainder, b);
  if (b.kind() != Kind::add) {
    if (std::optional<Scaled> cancelled = cancel_common_factor(a, b))
      return mul(cancelled->factor, mod(cancelled->scaled, cancelled->reduced)) + cancelled->offset;
    if (Expr dropped = drop_inner_mods(a, b); !(dropped == a)) return mod(dropped, b);
  }
  Expr operands[] = {a, b};
  return context.intern(Kind::mod, operands);
}

Expr floor_div(Expr a, int64_t b) { return floor_div(a, a.context().constant(b)); }
Expr mod(Expr a, int64_t b) { return mod(a, a.context().constant(b)); }
Expr ceil_div(Expr a, Expr b) { return floor_div(a + b - 1, b); }

}  // namespace kerf::sym
