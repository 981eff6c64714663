// Windows: reads of the operand at positions that an index expression gives, masked where they may be outside. A window
// over positions (an iota, or a view of one) is arithmetic on indices that its readers do themselves.
#include "lower/draft.h"
#include "sym/simplify.h"

namespace kerf::lower {

namespace {

using graph::Attr;

// `condition` and-ed with 0 <= at < extent, as far as that is not known; absent stands for true.
void require_inside(KernelDraft& draft, std::optional<loop::ValueId>& condition, sym::Expr at,
                    sym::Expr extent) {
  loop::KernelBuilder& builder = draft.builder();
  auto require = [&](ops::ScalarOp comparison, sym::Expr bound) {
    loop::ValueId holds = builder.apply(comparison, {builder.index(at), builder.index(bound)});
    condition = condition ? builder.apply(ops::ScalarOp::and_, {*condition, holds}) : holds;
  };
  sym::Expr zero = draft.lowering().context.constant(0);
  if (!sym::provably_less_equal(zero, at, draft.facts())) require(ops::ScalarOp::ge, zero);
  if (!sym::provably_less(at, extent, draft.facts())) require(ops::ScalarOp::lt, extent);
}

// Whether the value is computed from positions alone.
bool is_of_positions(const Lowering& lowering, graph::ValueId value) {
  const Place& place = lowering.places[value];
  if (const auto* mapped = std::get_if<Mapped>(&place))
    return is_of_positions(lowering, lowering.graph.nodes[mapped->view].operands[0]);
  return std::holds_alternative<Iota>(place) || std::holds_alternative<Uniform>(place);
}

}  // namespace

loop::ValueId read_window(KernelDraft& draft, const graph::Node& node, const Position& position,
                          std::optional<Mask> mask) {
  const std::vector<sym::Expr>& source = draft.lowering().graph.type(node.operands[0]).shape;
  auto attribute = [&](Attr attr) { return node.get<std::vector<sym::Expr>>(attr); };
  std::vector<sym::Expr> scale = attribute(Attr::scale), shift = attribute(Attr::shift);
  std::vector<sym::Expr> divisor = attribute(Attr::divisor), dilation = attribute(Attr::dilation);
  size_t kept = source.size() - scale.size();
  Position inner(position.begin(), position.begin() + static_cast<std::ptrdiff_t>(source.size()));
  std::optional<loop::ValueId> inside;
  for (size_t w = 0; w < scale.size(); ++w) {
    sym::Expr start = sym::floor_div(scale[w] * position[kept + w] + shift[w], divisor[w]);
    inner[kept + w] = sym::simplify(start + dilation[w] * position[source.size() + w], draft.facts());
    require_inside(draft, inside, inner[kept + w], source[kept + w]);
  }
  if (!inside) return draft.read(node.operands[0], inner, mask);
  loop::ValueId value = draft.read(node.operands[0], inner,
                                   Mask{*inside, draft.builder().constant(node.get<Scalar>(Attr::value))});
  return mask ? draft.builder().apply(ops::ScalarOp::where, {mask->condition, value, mask->other}) : value;
}

void lower_window(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  if (is_of_positions(lowering, node.operands[0])) {
    lowering.places[node.results[0]] = Mapped{id};
    return;
  }
  KernelDraft draft(lowering, id, node_name(lowering.graph, id));
  Position position = draft.open_loops(lowering.graph.type(node.results[0]).shape);
  draft.store(place_in_new_buffer(lowering, node.results[0]), position,
              read_window(draft, node, position, std::nullopt));
  draft.finish();
}

}  // namespace kerf::lower
