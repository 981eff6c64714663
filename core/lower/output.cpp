// What the graph returns: tensors with eager's strides, as views of the buffers they are in where these have them.
// Two outputs share memory exactly if one is a view of the other in the graph, and an output that is a view of an
// input is given back as one.
#include "lower/layout.h"
#include "lower/tensor_view.h"

namespace kerf::lower {

namespace {

// The value where it is if that is channels last, else with eager's strides: the two that whoever asked for any strides
// can tell apart.
target::TensorView dense_view(Lowering& lowering, graph::ValueId value) {
  const graph::TensorType& type = lowering.graph.type(value);
  const auto* place = std::get_if<Strided>(&lowering.places[value]);
  bool keeps = place && is_channels_last(lowering, type.shape, place->strides);
  return view_with_strides(lowering, value,
                           keeps ? channels_last_strides(lowering.context, type.shape) : type.strides);
}

}  // namespace

void lower_outputs(Lowering& lowering) {
  const graph::Graph& graph = lowering.graph;
  for (const graph::Output& output : graph.outputs) {
    target::ProgramOutput result;
    switch (output.kind) {
      case graph::Output::Kind::none: break;
      case graph::Output::Kind::integer:
        result.kind = target::ProgramOutput::Kind::integer;
        result.integer = output.integer;
        break;
      case graph::Output::Kind::tensor: {
        result.kind = target::ProgramOutput::Kind::tensor;
        result.view = output.any_strides
                          ? dense_view(lowering, output.value)
                          : view_with_strides(lowering, output.value, graph.type(output.value).strides);
        loop::ProgramBuffer& buffer = lowering.program.buffers[result.view.buffer];
        if (buffer.kind == loop::BufferKind::input) {
          result.alias_input = buffer.input_index;
        } else {
          buffer.kind = loop::BufferKind::output;
        }
        break;
      }
    }
    lowering.program.outputs.push_back(std::move(result));
  }
}

}  // namespace kerf::lower
