#include <algorithm>
#include <iterator>

#include "graph/passes/expand.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace kerf::graph {

namespace {

struct Expansion {
  Op op;
  Expanded (*expand)(const Composite& composite);
};

constexpr Expansion kExpansions[] = {
    {Op::softmax, expand_softmax},
    {Op::safe_softmax, expand_safe_softmax},
    {Op::log_softmax, expand_log_softmax},
    {Op::softmax_backward, expand_softmax_backward},
    {Op::log_softmax_backward, expand_log_softmax_backward},
    {Op::layer_norm, expand_layer_norm},
    {Op::layer_norm_backward, expand_layer_norm_backward},
    {Op::batch_norm, expand_batch_norm},
    {Op::batch_norm_inference, expand_batch_norm_inference},
    {Op::batch_norm_backward, expand_batch_norm_backward},
    {Op::group_norm, expand_group_norm},
    {Op::group_norm_backward, expand_group_norm_backward},
    {Op::gelu, expand_gelu},
    {Op::gelu_backward, expand_gelu_backward},
    {Op::embedding_backward, expand_embedding_backward},
    {Op::nll_loss, expand_nll_loss},
    {Op::nll_loss_backward, expand_nll_loss_backward},
};

Expanded expand(const Composite& composite, RandomState& random) {
  if (composite.node.op == Op::native_dropout) return expand_native_dropout(composite, random);
  auto found = std::ranges::find(kExpansions, composite.node.op, &Expansion::op);
  CHECK(found != std::end(kExpansions), "{} has no expansion", info(composite.node.op).text);
  return found->expand(composite);
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
