// cat and pad. A cat is one kernel per piece, each writing its slice of the result's buffer: a producer of the piece
// can then be merged into it.
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
  std::optional<Mask> mask;
  if (inside) mask = Mask{*inside, draft.builder().constant(node.get<Scalar>(Attr::value))};
  draft.store(place_in_new_buffer(lowering, node.results[0]), position,
              draft.read(node.operands[0], inner, mask));
  draft.finish();
}

}  // namespace kerf::lower
