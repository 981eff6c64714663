#include <unordered_map>

#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"
#include "graph/print.h"

namespace kerf::graph {

namespace {

bool may_join(const Node& node) {
  switch (info(node.op).family) {
    case Family::random:
    case Family::external:
    case Family::effect: return false;
    case Family::composite: return node.op != Op::native_dropout;
    case Family::source: return node.op != Op::input;
    case Family::pointwise:
    case Family::reduce:
    case Family::view:
    case Family::assemble:
    case Family::gather:
    case Family::scatter:
    case Family::scan:
    case Family::matmul: return true;
  }
  UNREACHABLE("family");
}

// Copies exist to be memory of their own.
bool is_copy(const Graph& graph, const Node& node) {
  return node.op == Op::cast && graph.type(node.operands[0]).dtype == graph.type(node.results[0]).dtype;
}

// Nodes of equal keys compute equal values that look alike from outside.
std::string key_of(Rewrite& rewrite, const Node& node) {
  Node over_new = node;
  over_new.operands = rewrite.at(node.operands);
  over_new.results.clear();
  std::string key = to_text(rewrite.to(), over_new);
  for (ValueId result : node.results)
    key += ": " + to_text(rewrite.from().type(result), *rewrite.from().context);
  return key;
}

// The values in whose memory, seen through views, an output is.
IdVector<ValueId, char> memories_of_outputs(const Graph& graph) {
  IdVector<ValueId, char> found(graph.values.size(), 0);
  for (const Output& output : graph.outputs) {
    if (output.kind != Output::Kind::tensor) continue;
    ValueId value = output.value;
    for (const Node* node = &graph.nodes[graph.values[value].producer]; info(node->op).family == Family::view;
         node = &graph.nodes[graph.values[value].producer])
      value = node->operands[0];
    found[value] = 1;
  }
  return found;
}

}  // namespace

Graph eliminate_common_nodes(const Graph& graph) {
  Rewrite rewrite(graph);
  IdVector<ValueId, char> returned = memories_of_outputs(graph);
  std::unordered_map<std::string, const Node*> first;
  for (const Node& node : graph.nodes) {
    if (!may_join(node) || is_copy(graph, node)) {
      rewrite.copy(node);
      continue;
    }
    auto [found, inserted] = first.emplace(key_of(rewrite, node), &node);
    if (inserted) {
      rewrite.copy(node);
    } else {
      for (size_t i = 0; i < node.results.size(); ++i) {
        ValueId known = found->second->results[i], result = node.results[i];
        ValueId shared = rewrite.at(known);
        // Two results of a call are two memories, even if equal.
        if (returned[result] && returned[known])
          shared = rewrite.builder().copy(shared, graph.type(result).dtype);
        returned[known] |= returned[result];
        rewrite.forward(result, shared);
      }
    }
  }
  return rewrite.finish();
}

}  // namespace kerf::graph
