// Copies of values into buffers of their own, where strides cannot express a view or must be others.
#include "graph/build.h"
#include "lower/draft.h"

namespace kerf::lower {

namespace {

// The value's shape without repeated elements: along a stride of 0 all are the same one.
std::vector<sym::Expr> distinct_shape(const std::vector<sym::Expr>& shape,
                                      const std::vector<sym::Expr>& strides) {
  std::vector<sym::Expr> distinct = shape;
  for (size_t d = 0; d < shape.size(); ++d)
    if (strides[d].is_constant(0) && !shape[d].is_constant(0)) distinct[d] = strides[d].context().constant(1);
  return distinct;
}

}  // namespace

Strided materialize(Lowering& lowering, graph::ValueId value, const std::vector<sym::Expr>& strides) {
  const graph::TensorType& type = lowering.graph.type(value);
  CHECK(type.opaque.empty(), "a tensor of {} would have to be copied", type.opaque);
  for (const Strided& copy : lowering.copies[value])
    if (same_strides(type.shape, copy.strides, strides, lowering.facts)) return copy;

  graph::NodeId producer = lowering.graph.values[value].producer;
  KernelDraft draft(lowering, producer, node_name(lowering.graph, producer) + "_copy");
  sym::Expr elements = storage_extent(lowering.context, type.shape, strides, lowering.facts);
  bool dense = same_strides(type.shape, strides, graph::contiguous_strides(lowering.context, type.shape),
                            lowering.facts);
  target::BufferIndex buffer =
      add_buffer(lowering, {.name = draft.builder().kernel().name, .dtype = type.dtype, .elements = elements},
                 dense ? type.shape : std::vector{elements});
  Strided target{buffer, strides, lowering.context.constant(0)};
  Position position = draft.open_loops(distinct_shape(type.shape, strides));
  draft.store(target, position, draft.read(value, position));
  draft.finish();
  lowering.copies[value].push_back(target);
  return target;
}

}  // namespace kerf::lower
