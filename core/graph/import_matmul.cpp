// Matrix products: library calls in the end, so only what the libraries do.
#include "graph/import_call.h"

namespace kerf::graph {

namespace {

bool is_product_dtype(const ImportCall& call) { return is_floating(call.result().dtype); }

}  // namespace

// mm, bmm
Imported import_mm(const ImportCall& call) {
  if (!is_product_dtype(call)) return decline("integers");
  Term a = call.tensor(0), b = call.tensor(1);
  return one(call.builder.node(call.row.op, {a, b}, {}, {call.result()})[0]);
}

// addmm, baddbmm: bias, a, b, beta, alpha. A bias times zero is not read: its NaN must not come through.
Imported import_addmm(const ImportCall& call) {
  if (!is_product_dtype(call)) return decline("integers");
  if (call.is_symbolic(3) || call.is_symbolic(4)) return decline("symbolic factors");
  Term bias = call.tensor(0), a = call.tensor(1), b = call.tensor(2);
  double beta = call.is_none(3) ? 1 : call.number(3), alpha = call.is_none(4) ? 1 : call.number(4);
  if (beta == 0 && alpha == 1)
    return one(
        call.builder.node(call.row.op == Op::addmm ? Op::mm : Op::bmm, {a, b}, {}, {call.result()})[0]);
  return one(call.builder.node(call.row.op, {bias, a, b}, {{Attr::alpha, alpha}, {Attr::beta, beta}},
                               {call.result()})[0]);
}

// Matrix by vector and vector by vector, as products of matrices.
Imported import_mv(const ImportCall& call) {
  if (!is_product_dtype(call)) return decline("integers");
  Term a = call.tensor(0), b = call.tensor(1);
  ValueId left = a.type().rank() == 1 ? call.builder.unsqueeze(a, 0) : a.value();
  ValueId right = call.builder.unsqueeze(b, 1);
  return one(call.builder.reshape(call.builder.node(Op::mm, {left, right}, {}, {})[0], call.result().shape));
}

}  // namespace kerf::graph
