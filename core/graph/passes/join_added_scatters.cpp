// The gradient of an embedding table that another layer shares arrives as a sum: the other layer's gradient, and rows
// added into zeros. The zeros and one pass over the table go when the rows are added to the other gradient instead.
//
//   x + index_put(zeros, rows, accumulate)   ->   index_put(x + 0.0, rows, accumulate)
//
// The added zero keeps what the sum makes of -0.0; it is part of the copy that index_put makes of its data.
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"
#include "graph/shape.h"

namespace kerf::graph {

namespace {

const Node& producer(const Graph& graph, ValueId value) { return graph.nodes[graph.values[value].producer]; }

bool is_zeros(const Graph& graph, ValueId value) {
  const Node& node = producer(graph, value);
  if (node.op == Op::expand) return is_zeros(graph, node.operands[0]);
  return node.op == Op::constant && node.get<Scalar>(Attr::value) == Scalar::of(graph.type(value).dtype, 0.0);
}

// Rows added into zeros, read by nobody else.
bool joins(const Graph& graph, const IdVector<ValueId, int>& uses, ValueId value) {
  const Node& node = producer(graph, value);
  return node.op == Op::index_put && node.get<bool>(Attr::accumulate) && uses[value] == 1 &&
         is_floating(graph.type(value).dtype) && is_zeros(graph, node.operands[0]);
}

// Which operand of a sum joins; absent where none does or the other is broadcast.
std::optional<size_t> joining_operand(const Graph& graph, const IdVector<ValueId, int>& uses,
                                      const Node& node) {
  if (node.op != Op::apply || node.get<ops::ScalarOp>(Attr::op) != ops::ScalarOp::add) return std::nullopt;
  for (size_t i : {1, 0}) {
    ValueId rows = node.operands[i], other = node.operands[1 - i];
    if (rows != other && joins(graph, uses, rows) && graph.type(rows).shape == graph.type(other).shape)
      return i;
  }
  return std::nullopt;
}

}  // namespace

Graph join_added_scatters(const Graph& graph) {
  IdVector<ValueId, int> uses = count_uses(graph);
  Rewrite rewrite(graph);
  for (const Node& node : graph.nodes) {
    std::optional<size_t> joining = joining_operand(graph, uses, node);
    if (!joining) {
      rewrite.copy(node);
      continue;
    }
    // The rows' own node is dead from here on.
    const Node& scatter = producer(graph, node.operands[*joining]);
    ValueId other = rewrite.at(node.operands[1 - *joining]);
    Builder& builder = rewrite.builder();
    builder.set_source(node.source);
    ValueId zero = builder.constant(Scalar::of(builder.type(other).dtype, 0.0));
    std::vector<ValueId> operands = rewrite.at(scatter.operands);
    operands[0] = builder.apply(ops::ScalarOp::add, {other, zero});
    builder.set_source(scatter.source);
    rewrite.replace(node, builder.node(Op::index_put, operands, scatter.attributes, {}));
  }
  return rewrite.finish();
}

}  // namespace kerf::graph
