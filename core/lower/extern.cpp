// External nodes: the call as it stands, tensors given with eager's strides, because what an operator does or returns
// may depend on them.
#include "lower/tensor_view.h"
#include "target/library_ops.h"

namespace kerf::lower {

namespace {

using graph::Attr;

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
  const std::string_view by_design = target::library_reason(call.op);
  call.is_matmul_like = !by_design.empty();
  call.reason = call.is_matmul_like ? by_design : node.get<std::string>(Attr::reason);
  append_call(lowering, id, std::move(call));
}

}  // namespace kerf::lower
