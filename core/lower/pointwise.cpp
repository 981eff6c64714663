// Pointwise nodes: loops over the result, the operands' elements, one scalar operation.
#include "lower/draft.h"

namespace kerf::lower {

namespace {

using graph::Attr;

loop::ValueId apply(KernelDraft& draft, const graph::Node& node, const Position& position) {
  std::vector<loop::ValueId> operands;
  for (graph::ValueId operand : node.operands) operands.push_back(draft.read_broadcast(operand, position));
  return draft.builder().apply(node.get<ops::ScalarOp>(Attr::op), std::move(operands));
}

loop::ValueId compute(KernelDraft& draft, const graph::Node& node, const Position& position) {
  switch (node.op) {
    case graph::Op::apply: return apply(draft, node, position);
    case graph::Op::cast:
      return draft.builder().cast(draft.read(node.operands[0], position), node.get<DType>(Attr::dtype));
    case graph::Op::bitcast:
      return draft.builder().bitcast(draft.read(node.operands[0], position), node.get<DType>(Attr::dtype));
    default: UNREACHABLE("{} is not pointwise", graph::info(node.op).text);
  }
}

}  // namespace

void lower_pointwise(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  const graph::TensorType& type = lowering.graph.type(node.results[0]);
  KernelDraft draft(lowering, id, node_name(lowering.graph, id));
  Position position = draft.open_loops(type.shape);
  loop::ValueId value = compute(draft, node, position);
  draft.store(place_in_new_buffer(lowering, node.results[0]), position, value);
  draft.finish();
}

}  // namespace kerf::lower
