#pragma once
// The expansions behind expand_composites, a file per family. Each appends the nodes of one composite over
// `operands` and returns its results in the types that `results` say (strides are the caller's business).
#include <limits>
#include <vector>

#include "graph/graph.h"
#include "graph/shape.h"
#include "graph/term.h"

namespace kerf::graph {

struct Composite {
  Builder& builder;
  const Node& node;  // for its attributes
  std::vector<Term> operands;
  std::vector<TensorType> results;

  // Operand `i` in the type that arithmetic on it is done in.
  Term computing(size_t i) const { return operands[i].computing(); }
  Term term(ValueId value) const { return {builder, value}; }
  // A result in its promised dtype and shape.
  ValueId result(size_t i, const Term& value) const {
    return builder.reshape(value.in(results[i].dtype), results[i].shape);
  }
};

// The mean that a norm saves as eager's running update leaves it: lost after an infinite element, as the deviation is.
inline Term running_mean(const Term& mean, const Term& rstd) {
  return where(isnan(rstd), std::numeric_limits<double>::quiet_NaN(), mean);
}

// Random numbers of one graph: one seed drawn when first asked for, and a counter that no two draws share.
struct RandomState {
  ValueId seed;
  sym::Expr next;
};

using Expanded = std::vector<ValueId>;

Expanded expand_softmax(const Composite& composite);
Expanded expand_safe_softmax(const Composite& composite);
Expanded expand_log_softmax(const Composite& composite);
Expanded expand_softmax_backward(const Composite& composite);
Expanded expand_log_softmax_backward(const Composite& composite);
Expanded expand_layer_norm(const Composite& composite);
Expanded expand_layer_norm_backward(const Composite& composite);
Expanded expand_batch_norm(const Composite& composite);
Expanded expand_batch_norm_inference(const Composite& composite);
Expanded expand_batch_norm_backward(const Composite& composite);
Expanded expand_group_norm(const Composite& composite);
Expanded expand_group_norm_backward(const Composite& composite);
Expanded expand_gelu(const Composite& composite);
Expanded expand_gelu_backward(const Composite& composite);
Expanded expand_embedding_backward(const Composite& composite);
Expanded expand_nll_loss(const Composite& composite);
Expanded expand_nll_loss_backward(const Composite& composite);
Expanded expand_native_dropout(const Composite& composite, RandomState& random);

}  // namespace kerf::graph
