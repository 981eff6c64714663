#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace kerf::graph {

namespace {

// "aten.add_.Tensor" changes its first argument; "aten.__and__.Tensor" does not.
bool is_in_place(std::string_view name) {
  std::string_view base = name.substr(0, name.rfind('.'));
  return base.ends_with('_') && !base.ends_with("__");
}

bool has_effect(const Node& node) {
  if (node.op == Op::assign || node.op == Op::input) return true;
  return node.op == Op::external && (node.results.empty() || is_in_place(node.get<std::string>(Attr::name)));
}

}  // namespace

Graph remove_dead_nodes(const Graph& graph) {
  IdVector<ValueId, char> read(graph.values.size(), 0);
  for (const Output& output : graph.outputs)
    if (output.kind == Output::Kind::tensor) read[output.value] = 1;
  IdVector<NodeId, char> live(graph.nodes.size(), 0);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[NodeId(i)];
    bool needed = has_effect(node);
    for (ValueId result : node.results) needed |= read[result] != 0;
    if (!needed) continue;
    live[NodeId(i)] = 1;
    for (ValueId operand : node.operands) read[operand] = 1;
  }
  Rewrite rewrite(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (live[NodeId(i)]) rewrite.copy(graph.nodes[NodeId(i)]);
  return rewrite.finish();
}

}  // namespace kerf::graph
