// Builders of minima and maxima: n-ary, flat, sorted, each operand once, at most one constant.
#include <algorithm>

#include "sym/expr.h"
#include "sym/inline_vector.h"

namespace kerf::sym {

namespace {

using Operands = InlineVector<Expr, 8>;

void append_operands(Kind kind, Expr expr, Operands& out) {
  if (expr.kind() != kind) {
    out.push_back(expr);
    return;
  }
  for (size_t i = 0; i < expr.size(); ++i) out.push_back(expr.operand(i));
}

Expr build_extremum(Kind kind, Expr a, Expr b) {
  CHECK(&a.context() == &b.context(), "operands of two contexts");
  Operands operands;
  append_operands(kind, a, operands);
  append_operands(kind, b, operands);
  std::sort(operands.begin(), operands.end(), Less{});
  size_t kept = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    Expr operand = operands[i];
    bool both_constant = kept > 0 && operands[kept - 1].is_constant() && operand.is_constant();
    if (both_constant) {
      // Constants are last and ascending: a minimum keeps the first of them, a maximum the last.
      if (kind == Kind::max) operands[kept - 1] = operand;
    } else if (kept == 0 || !(operands[kept - 1] == operand)) {
      operands[kept++] = operand;
    }
  }
  operands.truncate(kept);
  return kept == 1 ? operands[0] : a.context().intern(kind, operands.span());
}

}  // namespace

Expr min(Expr a, Expr b) { return build_extremum(Kind::min, a, b); }
Expr max(Expr a, Expr b) { return build_extremum(Kind::max, a, b); }

}  // namespace kerf::sym
