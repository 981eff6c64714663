#include "lower/tensor_view.h"

#include "graph/build.h"

namespace kerf::lower {

namespace {

target::TensorView view_of(const Lowering& lowering, graph::ValueId value, const Strided& place) {
  const graph::TensorType& type = lowering.graph.type(value);
  return {place.buffer, type.dtype, type.shape, place.strides, place.offset};
}

const Strided* library_place(const Lowering& lowering, graph::ValueId value) {
  const auto* place = std::get_if<Strided>(&lowering.places[value]);
  return place && !place->flipped ? place : nullptr;
}

}  // namespace

target::TensorView any_view(Lowering& lowering, graph::ValueId value) {
  if (const Strided* place = library_place(lowering, value)) return view_of(lowering, value, *place);
  std::vector<sym::Expr> strides =
      graph::contiguous_strides(lowering.context, lowering.graph.type(value).shape);
  return view_of(lowering, value, materialize(lowering, value, strides));
}

target::TensorView view_with_strides(Lowering& lowering, graph::ValueId value,
                                     const std::vector<sym::Expr>& strides) {
  const graph::TensorType& type = lowering.graph.type(value);
  const Strided* place = library_place(lowering, value);
  bool has_strides = place && same_strides(type.shape, place->strides, strides, lowering.facts);
  target::TensorView view =
      view_of(lowering, value, has_strides ? *place : materialize(lowering, value, strides));
  view.strides = strides;  // those of dimensions of one element too
  return view;
}

void append_call(Lowering& lowering, graph::NodeId id, target::ExternCall call, const StridesOf& strides_of) {
  const graph::Node& node = lowering.graph.nodes[id];
  if (node.source.valid()) call.source = lowering.graph.sources[node.source];
  for (graph::ValueId result : node.results) {
    const graph::TensorType& type = lowering.graph.type(result);
    std::vector<sym::Expr> strides = strides_of ? strides_of(type) : type.strides;
    target::BufferIndex buffer = target::kNoBuffer;
    if (lowering.uses[result] > 0) {
      sym::Expr elements = storage_extent(lowering.context, type.shape, strides, lowering.facts);
      buffer = add_buffer(lowering,
                          {.name = node_name(lowering.graph, id),
                           .dtype = type.dtype,
                           .elements = elements,
                           .written_by_extern = true},
                          {elements});
      lowering.places[result] = Strided{buffer, strides, lowering.context.constant(0)};
    }
    call.results.push_back({buffer, type.dtype, type.shape, strides, !type.opaque.empty()});
  }
  lowering.program.steps.emplace_back(std::move(call));
}

}  // namespace kerf::lower
