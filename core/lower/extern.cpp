// External nodes: the call as it stands, tensors given with eager's strides, because what an operator does or returns
// may depend on them.
#include <algorithm>
#include <array>
#include <string_view>

#include "lower/tensor_view.h"

namespace kerf::lower {

namespace {

using graph::Attr;

// Operators that are the library's everywhere: matrix products, convolutions, attention.
bool is_matmul_like(std::string_view op) {
  constexpr std::array<std::string_view, 8> kNames = {"convolution", "conv1d", "conv2d", "conv3d",
                                                      "matmul",      "linear", "mm",     "attention"};
  size_t dot = op.find('.');
  std::string_view name = dot == op.npos ? op : op.substr(dot + 1);
  name = name.substr(0, name.find('.'));
  return std::ranges::any_of(kNames, [&](std::string_view part) { return name.find(part) != name.npos; });
}

target::ExternArgument placed(Lowering& lowering, const graph::Node& node,
                              const target::ExternArgument& argument) {
  target::ExternArgument result = argument;
  if (const auto* view = std::get_if<target::TensorView>(&argument.value)) {
    graph::ValueId operand = node.operands.at(view->buffer);
    const graph::TensorType& type = lowering.graph.type(operand);
    // Tensors of foreign dtypes are only handed on: no kernel could copy them.
    result.value = type.opaque.empty() ? view_with_strides(lowering, operand, type.strides)
                                       : any_view(lowering, operand);
  } else if (const auto* list = std::get_if<target::ExternArgumentList>(&argument.value)) {
    target::ExternArgumentList placed_list;
    for (const target::ExternArgument& item : *list) placed_list.push_back(placed(lowering, node, item));
    result.value = std::move(placed_list);
  }
  return result;
}

}  // namespace

void lower_external(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  target::ExternCall call;
  call.op = node.get<std::string>(Attr::name);
  for (const target::ExternArgument& argument : node.get<target::ExternArgumentList>(Attr::arguments))
    call.arguments.push_back(placed(lowering, node, argument));
  call.reason = node.get<std::string>(Attr::reason);
  call.is_matmul_like = is_matmul_like(call.op);
  append_call(lowering, id, std::move(call));
}

}  // namespace kerf::lower
