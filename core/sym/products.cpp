#include "sym/products.h"

#include <numeric>

#include "sym/integers.h"

namespace kerf::sym {

int64_t coefficient_of(Expr expr) {
  if (expr.is_constant()) return expr.constant();
  if (expr.kind() != Kind::mul || expr.node()->as_written) return 1;
  return expr.operand(0).is_constant() ? expr.operand(0).constant() : 1;
}

void factors_of(Expr expr, Factors& out) {
  if (expr.is_constant()) return;
  if (expr.kind() != Kind::mul || expr.node()->as_written) {
    out.push_back(expr);
    return;
  }
  for (size_t i = expr.operand(0).is_constant() ? 1 : 0; i < expr.size(); ++i) out.push_back(expr.operand(i));
}

Expr rest_of(Expr expr) {
  if (expr.is_constant()) return expr.context().constant(1);
  if (expr.kind() != Kind::mul || expr.node()->as_written || !expr.operand(0).is_constant()) return expr;
  if (expr.size() == 2) return expr.operand(1);
  Factors factors;
  factors_of(expr, factors);
  return expr.context().intern(Kind::mul, factors.span());
}

Expr make_product(Context& context, int64_t coefficient, std::span<const Expr> factors) {
  if (coefficient == 0 || factors.empty()) return context.constant(coefficient);
  if (coefficient == 1 && factors.size() == 1) return factors[0];
  Factors operands;
  if (coefficient != 1) operands.push_back(context.constant(coefficient));
  for (Expr factor : factors) operands.push_back(factor);
  return context.intern(Kind::mul, operands.span());
}

Expr make_term(int64_t coefficient, Expr rest) {
  if (coefficient == 1) return rest;
  Factors factors;
  factors_of(rest, factors);
  return make_product(rest.context(), coefficient, factors.span());
}

namespace {

// The sorted difference of two sorted lists; false when `part` is not contained.
bool remove_factors(const Factors& from, const Factors& part, Factors& out) {
  size_t next = 0;
  for (Expr factor : from) {
    if (next < part.size() && factor == part[next]) {
      ++next;
    } else {
      out.push_back(factor);
    }
  }
  return next == part.size();
}

}  // namespace

std::optional<Expr> divide_product(Expr term, Expr divisor) {
  int64_t numerator = coefficient_of(term);
  int64_t denominator = coefficient_of(divisor);
  if (denominator == 0 || (denominator == -1 && numerator == kMinInt) || numerator % denominator != 0)
    return std::nullopt;
  Factors from, part, left;
  factors_of(term, from);
  factors_of(divisor, part);
  if (!remove_factors(from, part, left)) return std::nullopt;
  return make_product(term.context(), numerator / denominator, left.span());
}

Expr gcd_product(Expr a, Expr b) {
  Factors of_a, of_b, common;
  factors_of(a, of_a);
  factors_of(b, of_b);
  size_t j = 0;
  for (Expr factor : of_a) {
    while (j < of_b.size() && compare(of_b[j], factor) < 0) ++j;
    if (j < of_b.size() && of_b[j] == factor) {
      common.push_back(factor);
      ++j;
    }
  }
  return make_product(a.context(), gcd_int(coefficient_of(a), coefficient_of(b)), common.span());
}

Expr without_factor(Expr term, Expr factor) {
  Factors from, part, left;
  factors_of(term, from);
  part.push_back(factor);
  CHECK(remove_factors(from, part, left), "not a factor of the term");
  return make_product(term.context(), coefficient_of(term), left.span());
}

bool stays_as_written(std::span<const Expr> operands) {
  for (Expr operand : operands)
    if (operand.kind() == Kind::add) return true;
  return operands.size() == 2 && !checked_mul(coefficient_of(operands[0]), coefficient_of(operands[1]));
}

}  // namespace kerf::sym
