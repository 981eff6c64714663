// Reductions: loops over the result, a Reduce over the reduced dimensions, one store.
#include <algorithm>

#include "lower/draft.h"

namespace kerf::lower {

namespace {

using graph::Attr;

bool is_reduced(const std::vector<int64_t>& dims, size_t dim) {
  return std::ranges::find(dims, static_cast<int64_t>(dim)) != dims.end();
}

// The operand's position from the loops' and the reduce's, each in order of the operand's dimensions.
Position merge(const Position& outer, const Position& reduced, const std::vector<int64_t>& dims) {
  Position position;
  auto next_outer = outer.begin();
  auto next_reduced = reduced.begin();
  for (size_t d = 0; d < outer.size() + reduced.size(); ++d)
    position.push_back(is_reduced(dims, d) ? *next_reduced++ : *next_outer++);
  return position;
}

sym::Expr row_major(sym::Context& context, const Position& position, const std::vector<sym::Expr>& extents) {
  sym::Expr index = context.constant(0);
  for (size_t d = 0; d < extents.size(); ++d) index = index * extents[d] + position[d];
  return index;
}

// The fold of an operand's elements.
loop::ValueId fold(KernelDraft& draft, const graph::Node& node, const Position& outer) {
  ops::ReduceOp op = node.get<ops::ReduceOp>(Attr::op);
  const auto& dims = node.get<std::vector<int64_t>>(Attr::dims);
  const graph::TensorType& operand = draft.lowering().graph.type(node.operands[0]);
  std::vector<sym::Expr> extents;
  for (size_t d = 0; d < operand.rank(); ++d)
    if (is_reduced(dims, d)) extents.push_back(operand.shape[d]);
  auto element = [&](const Position& reduced) {
    return draft.read(node.operands[0], merge(outer, reduced, dims));
  };
  if (extents.empty()) return element({});

  Position reduced = draft.open_reduce(extents);
  std::vector<loop::ValueId> yields = {element(reduced)};
  if (ops::info(op).has_index())
    yields.push_back(draft.builder().index(row_major(draft.lowering().context, reduced, extents)));
  return draft.builder().close_reduce({{op, yields}})[0];
}

}  // namespace

void lower_reduce(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  const graph::TensorType& type = lowering.graph.type(node.results[0]);
  KernelDraft draft(lowering, id, node_name(lowering.graph, id));
  Position position = draft.open_loops(type.shape);
  loop::ValueId value = fold(draft, node, position);
  draft.store(place_in_new_buffer(lowering, node.results[0]), position, value);
  draft.finish();
}

}  // namespace kerf::lower
