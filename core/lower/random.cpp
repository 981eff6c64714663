// Random draws: one seed a call from torch's generator, elements from their counter and that seed.
#include <limits>

#include "lower/draft.h"
#include "lower/tensor_view.h"

namespace kerf::lower {

using graph::Attr;

// Torch's own integers over almost the whole range of i64 (the upper bound is exclusive), so that manual_seed
// reproduces what is drawn here.
void lower_draw_seed(Lowering& lowering, graph::NodeId id) {
  sym::Context& context = lowering.context;
  using Constant = target::TorchConstant;
  target::ExternCall call;
  call.op = "aten.randint.low";
  call.arguments = {{context.constant(std::numeric_limits<int64_t>::min()), ""},
                    {context.constant(std::numeric_limits<int64_t>::max()), ""},
                    {target::ExternArgumentList{}, ""},
                    {Constant{Constant::Kind::dtype, "int64"}, "dtype"},
                    {Constant{Constant::Kind::device, "cpu"}, "device"}};
  call.reason = "random seed: drawn from the library's generator";
  append_call(lowering, id, std::move(call));
}

void lower_random_uniform(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  const graph::TensorType& type = lowering.graph.type(node.results[0]);
  KernelDraft draft(lowering, id, node_name(lowering.graph, id));
  loop::KernelBuilder& builder = draft.builder();
  const Strided& target = place_in_new_buffer(lowering, node.results[0]);
  Position position = draft.open_loops(type.shape);
  loop::ValueId seed = draft.read(node.operands[0], {});
  loop::ValueId counter = builder.index(node.get<sym::Expr>(Attr::offset) + draft.address(target, position));
  loop::ValueId value = builder.apply(ops::ScalarOp::random_uniform, {seed, counter});
  draft.store(target, position, builder.cast(value, type.dtype));
  draft.finish();
}

}  // namespace kerf::lower
