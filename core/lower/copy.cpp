// Copies of values into buffers of their own, where strides cannot express a view or must be others.
#include "graph/build.h"
#include "lower/draft.h"
#include "lower/tensor_view.h"

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

Strided copied(Lowering& lowering, graph::ValueId value, const std::vector<sym::Expr>& strides) {
  const graph::TensorType& type = lowering.graph.type(value);
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
  return target;
}

// A tensor of a dtype that kernels do not know: the library copies it.
Strided cloned(Lowering& lowering, graph::ValueId value, const std::vector<sym::Expr>& strides) {
  const graph::TensorType& type = lowering.graph.type(value);
  std::vector<sym::Expr> dense = graph::contiguous_strides(lowering.context, type.shape);
  CHECK(same_strides(type.shape, strides, dense, lowering.facts), "a copy of a {} tensor in another layout",
        type.opaque);
  sym::Expr elements = sym::product(lowering.context, type.shape);
  std::string name = node_name(lowering.graph, lowering.graph.values[value].producer) + "_copy";
  target::BufferIndex buffer = add_buffer(
      lowering, {.name = name, .dtype = type.dtype, .elements = elements, .written_by_extern = true},
      type.shape);
  target::ExternCall call;
  call.op = "aten.clone.default";
  call.arguments = {{any_view(lowering, value), ""},
                    {target::TorchConstant{target::TorchConstant::Kind::memory_format, "contiguous_format"},
                     "memory_format"}};
  call.results = {{buffer, type.dtype, type.shape, dense, /*is_opaque=*/true}};
  call.reason = fmt::format("a copy of a {} tensor", type.opaque);
  lowering.program.steps.emplace_back(std::move(call));
  return {buffer, dense, lowering.context.constant(0)};
}

}  // namespace

Strided materialize(Lowering& lowering, graph::ValueId value, const std::vector<sym::Expr>& strides) {
  const graph::TensorType& type = lowering.graph.type(value);
  for (const Strided& copy : lowering.copies[value])
    if (same_strides(type.shape, copy.strides, strides, lowering.facts)) return copy;
  Strided copy = type.opaque.empty() ? copied(lowering, value, strides) : cloned(lowering, value, strides);
  lowering.copies[value].push_back(copy);
  return copy;
}

}  // namespace kerf::lower
