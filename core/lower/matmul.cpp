// Matrix products: library calls on strided views of whatever buffers the operands lie in.
#include "lower/tensor_view.h"
#include "target/library_ops.h"

namespace kerf::lower {

namespace {

using graph::Attr;

std::string overload(graph::Op op) {
  switch (op) {
    case graph::Op::mm: return "aten.mm.default";
    case graph::Op::bmm: return "aten.bmm.default";
    case graph::Op::addmm: return "aten.addmm.default";
    case graph::Op::baddbmm: return "aten.baddbmm.default";
    default: UNREACHABLE("{} is not a matrix product", graph::info(op).text);
  }
}

// A factor as the library wants it: integer products take integer factors.
target::ExternArgument factor(const Lowering& lowering, const graph::Node& node, Attr attr,
                              const std::string& keyword) {
  double value = node.get<double>(attr);
  if (is_floating(lowering.graph.type(node.results[0]).dtype)) return {value, keyword};
  return {lowering.context.constant(static_cast<int64_t>(value)), keyword};
}

}  // namespace

void lower_matmul(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  target::ExternCall call;
  call.op = overload(node.op);
  for (graph::ValueId operand : node.operands) call.arguments.push_back({any_view(lowering, operand), ""});
  if (node.find(Attr::beta)) call.arguments.push_back(factor(lowering, node, Attr::beta, "beta"));
  if (node.find(Attr::alpha)) call.arguments.push_back(factor(lowering, node, Attr::alpha, "alpha"));
  call.reason = target::library_reason(call.op);
  call.is_matmul_like = true;
  append_call(lowering, id, std::move(call));
}

}  // namespace kerf::lower
