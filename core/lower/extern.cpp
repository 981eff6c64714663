// External nodes: the call as it stands, tensors given with eager's strides, because what an operator does or returns
// may depend on them. Convolutions run channels last where they can (layout.h).
#include "lower/layout.h"
#include "lower/tensor_view.h"
#include "target/library_ops.h"

namespace kerf::lower {

namespace {

using graph::Attr;

// The strides that a 4-d tensor of a channels-last call has.
std::vector<sym::Expr> strides_in_call(Lowering& lowering, const graph::TensorType& type,
                                       bool channels_last) {
  return channels_last && type.rank() == 4 ? graph::channels_last_strides(lowering.context, type.shape)
                                           : type.strides;
}

target::ExternArgument placed(Lowering& lowering, const graph::Node& node,
                              const target::ExternArgument& argument, bool channels_last) {
  target::ExternArgument result = argument;
  if (const auto* view = std::get_if<target::TensorView>(&argument.value)) {
    graph::ValueId operand = node.operands.at(view->buffer);
    const graph::TensorType& type = lowering.graph.type(operand);
    // Tensors of foreign dtypes are only handed on: no kernel could copy them.
    result.value = type.opaque.empty()
                       ? view_with_strides(lowering, operand, strides_in_call(lowering, type, channels_last))
                       : any_view(lowering, operand);
  } else if (const auto* list = std::get_if<target::ExternArgumentList>(&argument.value)) {
    target::ExternArgumentList placed_list;
    for (const target::ExternArgument& item : *list)
      placed_list.push_back(placed(lowering, node, item, false));
    result.value = std::move(placed_list);
  }
  return result;
}

}  // namespace

void lower_external(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  target::ExternCall call;
  call.op = node.get<std::string>(Attr::name);
  size_t images = channels_last_images(lowering, node);
  for (const target::ExternArgument& argument : node.get<target::ExternArgumentList>(Attr::arguments))
    call.arguments.push_back(placed(lowering, node, argument, call.arguments.size() < images));
  const std::string_view by_design = target::library_reason(call.op);
  call.is_matmul_like = !by_design.empty();
  call.reason = call.is_matmul_like ? by_design : node.get<std::string>(Attr::reason);
  append_call(lowering, id, std::move(call),
              [&](const graph::TensorType& type) { return strides_in_call(lowering, type, images > 0); });
}

}  // namespace kerf::lower
