// The gradient of an embedding table: rows of `grad` summed into a table of zeros, in f32 for halves.
#include "graph/passes/expand.h"

namespace kerf::graph {

// grad, indices
Expanded expand_embedding_backward(const Composite& composite) {
  Builder& builder = composite.builder;
  Term grad = composite.computing(0), indices = composite.operands[1];
  int64_t padding = composite.node.get<int64_t>(Attr::padding_idx);
  if (padding >= 0) {
    Term row = composite.term(builder.unsqueeze(indices, static_cast<int64_t>(indices.type().rank())));
    grad = where(equal(row, static_cast<double>(padding)), 0.0, grad);
  }
  ValueId zeros = builder.full(composite.results[0].shape, Scalar::of(grad.dtype(), 0));
  ValueId table = builder.node(Op::index_put, {zeros, grad, indices},
                               {{Attr::dims, std::vector<int64_t>{0}},
                                {Attr::wrap, false},
                                {Attr::dim, int64_t{0}},
                                {Attr::accumulate, true}},
                               {})[0];
  return {composite.result(0, composite.term(table))};
}

}  // namespace kerf::graph
