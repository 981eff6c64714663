#include "lower/layout.h"

#include <algorithm>
#include <optional>

#include "graph/build.h"

namespace kerf::lower {

namespace {

using graph::Attr;
using Strides = std::vector<sym::Expr>;

// Arguments of aten.convolution and aten.convolution_backward by position.
struct ConvolutionCall {
  size_t input;
  size_t weight;
  size_t dilation;
  size_t transposed;
};

std::optional<ConvolutionCall> convolution_call(const std::string& name) {
  if (name == "aten.convolution.default") return ConvolutionCall{0, 1, 5, 6};
  if (name == "aten.convolution_backward.default") return ConvolutionCall{1, 2, 6, 7};
  return std::nullopt;
}

const graph::TensorType* tensor_type(const Lowering& lowering, const graph::Node& node,
                                     const target::ExternArgument& argument) {
  const auto* view = std::get_if<target::TensorView>(&argument.value);
  return view ? &lowering.graph.type(node.operands.at(view->buffer)) : nullptr;
}

// A dimension of 1 is repeated: an operand of the whole batch, small next to the result, does not decide.
bool is_repeated(const graph::TensorType& operand, const graph::TensorType& result) {
  if (operand.rank() != result.rank()) return false;
  for (size_t i = 0; i < operand.shape.size(); ++i)
    if (operand.shape[i].is_constant(1) && !result.shape[i].is_constant(1)) return true;
  return false;
}

bool is_one(const target::ExternArgument& argument) {
  const auto* integer = std::get_if<sym::Expr>(&argument.value);
  return integer && integer->is_constant(1);
}

bool all_ones(const target::ExternArgument& argument) {
  const auto* list = std::get_if<target::ExternArgumentList>(&argument.value);
  return list && std::ranges::all_of(*list, is_one);
}

}  // namespace

bool is_channels_last(const Lowering& lowering, const std::vector<sym::Expr>& shape, const Strides& strides) {
  return shape.size() == 4 && graph::is_channels_last(shape, strides, lowering.facts);
}

Strides chosen_strides(const Lowering& lowering, graph::ValueId value) {
  const graph::TensorType& type = lowering.graph.type(value);
  if (type.rank() == 4) {
    for (graph::ValueId operand : lowering.graph.nodes[lowering.graph.values[value].producer].operands) {
      if (is_repeated(lowering.graph.type(operand), type)) continue;
      const auto* place = std::get_if<Strided>(&lowering.places[operand]);
      if (place && is_channels_last(lowering, lowering.graph.type(operand).shape, place->strides))
        return graph::channels_last_strides(lowering.context, type.shape);
    }
  }
  return graph::contiguous_strides(lowering.context, type.shape);
}

size_t channels_last_images(const Lowering& lowering, const graph::Node& node) {
  std::optional<ConvolutionCall> call = convolution_call(node.get<std::string>(Attr::name));
  if (!call) return 0;
  const auto& arguments = node.get<target::ExternArgumentList>(Attr::arguments);
  const graph::TensorType* input = tensor_type(lowering, node, arguments.at(call->input));
  const graph::TensorType* weight = tensor_type(lowering, node, arguments.at(call->weight));
  if (!input || !weight || input->rank() != 4) return 0;
  // The library has no such path for f64.
  if (input->dtype != DType::f32 && input->dtype != DType::bf16) return 0;
  const auto* transposed = std::get_if<bool>(&arguments.at(call->transposed).value);
  if (!transposed || *transposed) return 0;
  // Images that are row-major too (one channel, one pixel) do not tell the library which path to take.
  if (!is_channels_last(lowering, input->shape, graph::channels_last_strides(lowering.context, input->shape)))
    return 0;
  // torch 2.13 crashes in the bf16 backward of a dilated 1x1 convolution with channels last.
  bool is_point = weight->shape[2].is_constant(1) && weight->shape[3].is_constant(1);
  if (is_point && !all_ones(arguments.at(call->dilation))) return 0;
  return call->weight;
}

}  // namespace kerf::lower
