#include <optional>

#include "graph/passes/expand.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace kerf::graph {

namespace {

Expanded expand(const Composite& composite, RandomState& random) {
  switch (composite.node.op) {
    case Op::softmax: return expand_softmax(composite);
    case Op::safe_softmax: return expand_safe_softmax(composite);
    case Op::log_softmax: return expand_log_softmax(composite);
    case Op::softmax_backward: return expand_softmax_backward(composite);
    case Op::log_softmax_backward: return expand_log_softmax_backward(composite);
    case Op::layer_norm: return expand_layer_norm(composite);
    case Op::layer_norm_backward: return expand_layer_norm_backward(composite);
    case Op::gelu: return expand_gelu(composite);
    case Op::gelu_backward: return expand_gelu_backward(composite);
    case Op::embedding_backward: return expand_embedding_backward(composite);
    case Op::nll_loss: return expand_nll_loss(composite);
    case Op::nll_loss_backward: return expand_nll_loss_backward(composite);
    case Op::native_dropout: return expand_native_dropout(composite, random);
    default: UNREACHABLE("{} is no composite", info(composite.node.op).text);
  }
}

}  // namespace

Graph expand_composites(const Graph& graph) {
  Rewrite rewrite(graph);
  RandomState random{.seed = {}, .next = graph.context->constant(0)};
  for (const Node& node : graph.nodes) {
    if (info(node.op).family != Family::composite) {
      rewrite.copy(node);
      continue;
    }
    rewrite.builder().set_source(node.source);
    Composite composite{rewrite.builder(), node, {}, {}};
    for (ValueId operand : node.operands)
      composite.operands.emplace_back(rewrite.builder(), rewrite.at(operand));
    for (ValueId result : node.results) composite.results.push_back(graph.type(result));
    rewrite.replace(node, expand(composite, random));
  }
  return rewrite.finish();
}

}  // namespace kerf::graph
