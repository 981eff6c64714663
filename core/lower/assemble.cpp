// cat, pad and window. A cat is one kernel per piece, each writing its slice of the result's buffer: a producer of the piece
// can then be merged into it. Pads and windows are reads that are masked where an element may be outside.
#include "lower/draft.h"
#include "sym/simplify.h"

namespace kerf::lower {

namespace {

using graph::Attr;

// `condition` and-ed with the comparison; absent stands for true.
void require(KernelDraft& draft, std::optional<loop::ValueId>& condition, ops::ScalarOp comparison,
             sym::Expr left, sym::Expr right) {
  loop::KernelBuilder& builder = draft.builder();
  loop::ValueId holds = builder.apply(comparison, {builder.index(left), builder.index(right)});
  condition = condition ? builder.apply(ops::ScalarOp::and_, {*condition, holds}) : holds;
}

// Requires 0 <= at < extent, as far as that is not known.
void require_inside(KernelDraft& draft, std::optional<loop::ValueId>& condition, sym::Expr at,
                    sym::Expr extent) {
  sym::Expr zero = draft.lowering().context.constant(0);
  if (!sym::provably_less_equal(zero, at, draft.facts()))
    require(draft, condition, ops::ScalarOp::ge, at, zero);
  if (!sym::provably_less(at, extent, draft.facts()))
    require(draft, condition, ops::ScalarOp::lt, at, extent);
}

// The operand of `node` read at `source`, and the node's `value` where the condition is there and false.
loop::ValueId read_inside(KernelDraft& draft, const graph::Node& node, const Position& source,
                          std::optional<loop::ValueId> inside) {
  std::optional<Mask> mask;
  if (inside) mask = Mask{*inside, draft.builder().constant(node.get<Scalar>(Attr::value))};
  return draft.read(node.operands[0], source, mask);
}

}  // namespace

void lower_cat(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  Strided slice = place_in_new_buffer(lowering, node.results[0]);
  size_t rank = lowering.graph.type(node.results[0]).rank();
  size_t dim = static_cast<size_t>(node.get<int64_t>(Attr::dim));
  for (graph::ValueId piece : node.operands) {
    const std::vector<sym::Expr>& shape = lowering.graph.type(piece).shape;
    // torch lets an empty 1-d tensor stand beside pieces of any rank.
    if (shape.size() != rank || shape[dim].is_constant(0)) continue;
    KernelDraft draft(lowering, id, node_name(lowering.graph, id));
    Position position = draft.open_loops(shape);
    draft.store(slice, position, draft.read(piece, position));
    draft.finish();
    slice.offset = slice.offset + shape[dim] * slice.strides[dim];
  }
}

void lower_pad(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  const std::vector<sym::Expr>& source = lowering.graph.type(node.operands[0]).shape;
  const auto& low = node.get<std::vector<sym::Expr>>(Attr::low);
  const auto& high = node.get<std::vector<sym::Expr>>(Attr::high);
  sym::Expr zero = lowering.context.constant(0);
  KernelDraft draft(lowering, id, node_name(lowering.graph, id));
  Position position = draft.open_loops(lowering.graph.type(node.results[0]).shape);

  Position inner = position;
  std::optional<loop::ValueId> inside;
  for (size_t d = 0; d < inner.size(); ++d) {
    inner[d] = sym::simplify(position[d] - low[d], draft.facts());
    if (!sym::provably_less_equal(low[d], zero, draft.facts()))
      require(draft, inside, ops::ScalarOp::ge, inner[d], zero);
    if (!sym::provably_less_equal(high[d], zero, draft.facts()))
      require(draft, inside, ops::ScalarOp::lt, inner[d], source[d]);
  }
  draft.store(place_in_new_buffer(lowering, node.results[0]), position,
              read_inside(draft, node, inner, inside));
  draft.finish();
}

void lower_window(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  const std::vector<sym::Expr>& source = lowering.graph.type(node.operands[0]).shape;
  auto attribute = [&](Attr attr) { return node.get<std::vector<sym::Expr>>(attr); };
  std::vector<sym::Expr> scale = attribute(Attr::scale), shift = attribute(Attr::shift);
  std::vector<sym::Expr> divisor = attribute(Attr::divisor), dilation = attribute(Attr::dilation);
  KernelDraft draft(lowering, id, node_name(lowering.graph, id));
  Position position = draft.open_loops(lowering.graph.type(node.results[0]).shape);

  size_t kept = source.size() - scale.size();
  Position inner(position.begin(), position.begin() + static_cast<std::ptrdiff_t>(source.size()));
  std::optional<loop::ValueId> inside;
  for (size_t w = 0; w < scale.size(); ++w) {
    sym::Expr start = sym::floor_div(scale[w] * position[kept + w] + shift[w], divisor[w]);
    sym::Expr at = start + dilation[w] * position[source.size() + w];
    inner[kept + w] = sym::simplify(at, draft.facts());
    require_inside(draft, inside, inner[kept + w], source[kept + w]);
  }
  draft.store(place_in_new_buffer(lowering, node.results[0]), position,
              read_inside(draft, node, inner, inside));
  draft.finish();
}

}  // namespace kerf::lower
