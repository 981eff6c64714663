// Indexed writes: one kernel copies the data to the result's buffer, a second one stores the updates there in
// row-major order of the indices, so that of several updates of one element the last one stays. Data that nobody else reads, in
// a buffer of its own, is not copied: the updates go there.
#include <algorithm>

#include "graph/build.h"
#include "lower/indexing.h"

namespace kerf::lower {

namespace {

using graph::Attr;

enum class Update : uint8_t { assign, add, multiply, amin, amax };

Update update_of(const std::string& mode) {
  if (mode == "assign") return Update::assign;
  if (mode == "add") return Update::add;
  if (mode == "multiply") return Update::multiply;
  if (mode == "amin") return Update::amin;
  CHECK(mode == "amax", "a scatter of mode {}", mode);
  return Update::amax;
}

ops::ScalarOp step_of(Update update, DType dtype) {
  switch (update) {
    case Update::add: return dtype == DType::b1 ? ops::ScalarOp::or_ : ops::ScalarOp::add;
    case Update::multiply: return dtype == DType::b1 ? ops::ScalarOp::and_ : ops::ScalarOp::mul;
    case Update::amin: return ops::ScalarOp::minimum;
    case Update::amax: return ops::ScalarOp::maximum;
    case Update::assign: break;
  }
  UNREACHABLE("assigning is no step of a fold");
}

// A kernel has written the value to a buffer that this is the only use of.
bool may_be_overwritten(const Lowering& lowering, graph::ValueId value) {
  const graph::Node& producer = lowering.graph.nodes[lowering.graph.values[value].producer];
  return graph::info(producer.op).family == graph::Family::pointwise && lowering.uses[value] == 1 &&
         std::holds_alternative<Strided>(lowering.places[value]);
}

const Strided& copy_data(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  if (may_be_overwritten(lowering, node.operands[0])) {
    lowering.places[node.results[0]] = lowering.places[node.operands[0]];
    return std::get<Strided>(lowering.places[node.results[0]]);
  }
  KernelDraft draft(lowering, id, node_name(lowering.graph, id) + "_copy");
  const Strided& target = place_in_new_buffer(lowering, node.results[0]);
  Position position = draft.open_loops(lowering.graph.type(node.results[0]).shape);
  draft.store(target, position, draft.read(node.operands[0], position));
  draft.finish();
  return target;
}

// One step of the fold. Of zeros of two signs eager keeps the one that was there.
loop::ValueId folded(loop::KernelBuilder& builder, Update how, loop::ValueId before, loop::ValueId value) {
  DType dtype = builder.dtype(value);
  bool is_extremum = how == Update::amin || how == Update::amax;
  if (!is_extremum || !is_floating(dtype)) return builder.apply(step_of(how, dtype), {before, value});
  loop::ValueId beyond =
      builder.apply(how == Update::amin ? ops::ScalarOp::lt : ops::ScalarOp::gt, {value, before});
  loop::ValueId takes =
      builder.apply(ops::ScalarOp::or_, {beyond, builder.apply(ops::ScalarOp::isnan, {value})});
  return builder.apply(ops::ScalarOp::where, {takes, value, before});
}

void update(KernelDraft& draft, const Strided& target, const Position& position, loop::ValueId value,
            Update how) {
  loop::KernelBuilder& builder = draft.builder();
  DType dtype = builder.dtype(value);
  constexpr auto kMode = loop::BufferMode::inout;
  if (how == Update::assign) return draft.store(target, position, value, kMode);
  if (how == Update::add && dtype != DType::b1)
    return draft.store(target, position, value, kMode, loop::StoreMode::add);
  DType wide = compute_dtype(dtype);
  loop::ValueId before = builder.load(draft.bind(target.buffer, kMode), draft.address(target, position));
  loop::ValueId after = folded(builder, how, builder.cast(before, wide), builder.cast(value, wide));
  draft.store(target, position, builder.cast(after, dtype), kMode);
}

// Where an index may have failed on an empty dimension nothing is stored.
void update_checked(KernelDraft& draft, const Strided& target, const Indexed& indexed, loop::ValueId value,
                    Update how) {
  std::optional<loop::ValueId> condition = draft.has_elements(indexed.bounds);
  if (!condition) return update(draft, target, indexed.position, value, how);
  draft.builder().guard(*condition, [&] { update(draft, target, indexed.position, value, how); });
}

// The data's shape without the indexed dimensions, with the indices' common shape in their stead.
std::vector<sym::Expr> indexed_shape(const graph::Graph& graph, const graph::Node& node) {
  std::vector<std::vector<sym::Expr>> index_shapes;
  for (graph::ValueId index : std::span(node.operands).subspan(2))
    index_shapes.push_back(graph.type(index).shape);
  std::vector<sym::Expr> common = graph::broadcast_shapes(index_shapes, *graph.context);
  const auto& dims = node.get<std::vector<int64_t>>(Attr::dims);
  std::vector<sym::Expr> shape;
  const std::vector<sym::Expr>& data = graph.type(node.operands[0]).shape;
  for (size_t d = 0; d < data.size(); ++d)
    if (std::ranges::find(dims, static_cast<int64_t>(d)) == dims.end()) shape.push_back(data[d]);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(node.get<int64_t>(Attr::dim)), common.begin(),
               common.end());
  return shape;
}

}  // namespace

void lower_index_put(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  const Strided& target = copy_data(lowering, id);
  if (lowering.options.library_updates) return update_in_library(lowering, id);
  KernelDraft draft(lowering, id, node_name(lowering.graph, id));
  Position position = draft.open_loops(indexed_shape(lowering.graph, node));
  Indexed indexed = indexed_position(draft, node, std::span(node.operands).subspan(2), position);
  loop::ValueId value = draft.read_broadcast(node.operands[1], position);
  update_checked(draft, target, indexed, value,
                 node.get<bool>(Attr::accumulate) ? Update::add : Update::assign);
  draft.finish();
}

void lower_scatter(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  const Strided& target = copy_data(lowering, id);
  if (lowering.options.library_updates) return update_in_library(lowering, id);
  KernelDraft draft(lowering, id, node_name(lowering.graph, id));
  Position position = draft.open_loops(lowering.graph.type(node.operands[1]).shape);
  Indexed indexed = gathered_position(draft, node, position);
  loop::ValueId value = draft.read(node.operands[2], position);
  update_checked(draft, target, indexed, value, update_of(node.get<std::string>(Attr::mode)));
  draft.finish();
}

}  // namespace kerf::lower
