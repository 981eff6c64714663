// Scans (cumsum and its kin): a serial loop along the scanned dimension that carries the running fold in a local
// buffer of one element.
#include "lower/draft.h"
#include "ops/fold_step.h"

namespace kerf::lower {

namespace {

using graph::Attr;

// Eager carries sums and products of f32 in f64 on the CPU.
DType accumulator_dtype(DType dtype, ops::ReduceOp op) {
  bool rounds = op == ops::ReduceOp::sum || op == ops::ReduceOp::prod;
  return dtype == DType::f32 && rounds ? DType::f64 : dtype;
}

}  // namespace

void lower_scan(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  const graph::TensorType& type = lowering.graph.type(node.results[0]);
  ops::ReduceOp op = node.get<ops::ReduceOp>(Attr::op);
  DType wide = accumulator_dtype(type.dtype, op);
  KernelDraft draft(lowering, id, node_name(lowering.graph, id));
  loop::KernelBuilder& builder = draft.builder();
  const Strided& target = place_in_new_buffer(lowering, node.results[0]);
  sym::Expr zero = lowering.context.constant(0);

  // The lines, then the steps along each: 0-d values are one line of one step.
  std::vector<sym::Expr> lines = type.shape;
  size_t dim = static_cast<size_t>(node.get<int64_t>(Attr::dim));
  std::vector<sym::Expr> steps;
  if (!lines.empty()) {
    steps.push_back(lines[dim]);
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(dim));
  }
  Position position = draft.open_loops(lines);
  loop::BufferId carry =
      builder.add_buffer("carry", wide, {lowering.context.constant(1)}, loop::BufferMode::local);
  builder.store(carry, zero, builder.constant(ops::identity(op, wide)));
  Position step = draft.open_loops(steps);
  position.insert(position.begin() + static_cast<std::ptrdiff_t>(steps.empty() ? 0 : dim), step.begin(),
                  step.end());
  loop::ValueId element = builder.cast(draft.read(node.operands[0], position), wide);
  loop::ValueId folded = builder.apply(*ops::step_of(op), {builder.load(carry, zero), element});
  builder.store(carry, zero, folded);
  draft.store(target, position, builder.cast(folded, type.dtype));
  draft.finish();
}

}  // namespace kerf::lower
