// Indexed reads: the indices are loaded, checked against the dimension they point into, and take part in the address
// of the data's element.
#include "lower/indexing.h"

namespace kerf::lower {

using graph::Attr;

Indexed indexed_position(KernelDraft& draft, const graph::Node& node, std::span<const graph::ValueId> indices,
                         const Position& position) {
  const graph::Graph& graph = draft.lowering().graph;
  const std::vector<sym::Expr>& data = graph.type(node.operands[0]).shape;
  const auto& dims = node.get<std::vector<int64_t>>(Attr::dims);
  CHECK(dims.size() == indices.size(), "{} indices for {} dimensions", indices.size(), dims.size());
  // The indices' common shape stands at [begin, end) of the position; what is left are the other dimensions.
  size_t begin = static_cast<size_t>(node.get<int64_t>(Attr::dim));
  size_t end = begin + position.size() - (data.size() - dims.size());
  Position index_position(position.begin() + static_cast<std::ptrdiff_t>(begin),
                          position.begin() + static_cast<std::ptrdiff_t>(end));
  Indexed result{Position(data.size()), {}};
  for (size_t k = 0; k < dims.size(); ++k) {
    size_t dim = static_cast<size_t>(dims[k]);
    loop::ValueId index = draft.read_broadcast(indices[k], index_position);
    result.position[dim] = draft.checked_index(index, data[dim], node.get<bool>(Attr::wrap));
    result.bounds.push_back(data[dim]);
  }
  size_t next = 0;
  for (sym::Expr& at : result.position) {
    if (at.valid()) continue;
    if (next == begin) next = end;
    at = position[next++];
  }
  return result;
}

Indexed gathered_position(KernelDraft& draft, const graph::Node& node, Position position) {
  const graph::Graph& graph = draft.lowering().graph;
  loop::ValueId index = draft.read(node.operands[1], position);
  if (position.empty()) {  // 0-d: one element, as a line of length 1
    draft.checked_index(index, draft.lowering().context.constant(1), false);
    return {std::move(position), {}};
  }
  size_t dim = static_cast<size_t>(node.get<int64_t>(Attr::dim));
  sym::Expr bound = graph.type(node.operands[0]).shape[dim];
  position[dim] = draft.checked_index(index, bound, false);
  return {std::move(position), {bound}};
}

namespace {

template <class Locate>
void lower_read(Lowering& lowering, graph::NodeId id, Locate locate) {
  const graph::Node& node = lowering.graph.nodes[id];
  KernelDraft draft(lowering, id, node_name(lowering.graph, id));
  Position position = draft.open_loops(lowering.graph.type(node.results[0]).shape);
  Indexed source = locate(draft, node, position);
  loop::ValueId value = draft.read_checked(node.operands[0], source.position, source.bounds);
  draft.store(place_in_new_buffer(lowering, node.results[0]), position, value);
  draft.finish();
}

}  // namespace

void lower_index(Lowering& lowering, graph::NodeId id) {
  lower_read(lowering, id, [](KernelDraft& draft, const graph::Node& node, const Position& position) {
    return indexed_position(draft, node, std::span(node.operands).subspan(1), position);
  });
}

void lower_gather(Lowering& lowering, graph::NodeId id) { lower_read(lowering, id, gathered_position); }

}  // namespace kerf::lower
