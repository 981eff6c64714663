#include "sym/simplify.h"

#include "sym/batch.h"
#include "sym/products.h"
#include "sym/rules.h"

namespace kerf::sym {

Expr simplify(Expr expr, const Facts& facts) { return Simplifier(facts).simplify(expr); }

void simplify_all(std::span<Expr> exprs, const Facts& facts) {
  Simplifier simplifier(facts);
  for (Expr& expr : exprs) {
    expr = simplifier.simplify(expr);
    simplifier.renew_budget();
  }
}

// Runs until the node is what its simplified operands build and no rule applies: then simplifying it again
// changes nothing.
Expr Simplifier::simplify(Expr expr) {
  if (expr.is_constant()) return expr;
  if (const Expr* known = simplified_.find(expr)) return *known;
  Expr current = expr;
  for (;;) {
    if (const Expr* known = simplified_.find(current)) {
      current = *known;
      break;
    }
    Expr next = simplify_operands(current);
    if (next == current) next = rewrite(current);
    if (next == current || --budget_ < 0) break;
    current = next;
  }
  simplified_.set(expr, current);
  simplified_.set(current, current);
  return current;
}

Expr Simplifier::simplify_operands(Expr expr) {
  if (expr.is_constant() || expr.is_symbol()) return expr;
  InlineVector<Expr, 16> operands;
  bool changed = false;
  for (size_t i = 0; i < expr.size(); ++i) {
    operands.push_back(simplify(expr.operand(i)));
    changed |= !(operands[i] == expr.operand(i));
  }
  if (!changed) return expr;
  // A divisor that is provably zero means the expression is never evaluated: leave it alone.
  bool divides = expr.kind() == Kind::floor_div || expr.kind() == Kind::mod;
  if (divides && operands[1].is_constant(0)) return expr;
  return build(expr.context(), expr.kind(), operands.span());
}

Expr Simplifier::rewrite(Expr expr) {
  if (Range range = known_.range(expr); range.is_constant()) return expr.context().constant(*range.lo);
  if (Modulus modulus = known_.modulus(expr); modulus.modulus == 0)
    return expr.context().constant(modulus.remainder);
  if (expr.size() > kMaxWidth) return expr;
  switch (expr.kind()) {
    case Kind::constant:
    case Kind::symbol:
    case Kind::mul: return expr;
    case Kind::add: return rewrite_sum(expr, *this);
    case Kind::floor_div: return rewrite_floor_div(expr, *this);
    case Kind::mod: return rewrite_mod(expr, *this);
    case Kind::min:
    case Kind::max: return rewrite_extremum(expr, *this);
  }
  UNREACHABLE("kind of an expression");
}

}  // namespace kerf::sym
