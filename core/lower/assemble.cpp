// cat and pad. A cat is one kernel per piece, each writing its slice of the result's buffer: a producer of the piece
// can then be merged into it. A cat that rotates one value, as a roll does, is one kernel that reads through a remainder;
// rotations of rotations are joined.
#include "lower/draft.h"
#include "lower/view.h"
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

// out[i] = value[(i + start) % size] along dim.
struct Rotation {
  graph::ValueId value;
  size_t dim;
  sym::Expr start, size;
};

// cat(x[start:], x[:start]), of a dimension that is not empty.
std::optional<Rotation> rotation_of(const graph::Graph& graph, const graph::Node& cat,
                                    const sym::Facts& facts) {
  if (cat.op != graph::Op::cat || cat.operands.size() != 2) return std::nullopt;
  int64_t dim = cat.get<int64_t>(Attr::dim);
  const graph::Node* pieces[2];
  for (size_t i = 0; i < 2; ++i) {
    pieces[i] = &graph.nodes[graph.values[cat.operands[i]].producer];
    if (pieces[i]->op != graph::Op::slice || pieces[i]->get<int64_t>(Attr::dim) != dim ||
        !pieces[i]->get<sym::Expr>(Attr::step).is_constant(1) ||
        pieces[i]->operands[0] != pieces[0]->operands[0])
      return std::nullopt;
  }
  auto d = static_cast<size_t>(dim);
  auto length = [&](graph::ValueId value) { return graph.type(value).shape[d]; };
  Rotation rotation{pieces[0]->operands[0], d, pieces[0]->get<sym::Expr>(Attr::start), {}};
  rotation.size = length(rotation.value);
  bool joins = pieces[1]->get<sym::Expr>(Attr::start).is_constant(0) &&
               sym::provably_equal(length(cat.operands[1]), rotation.start, facts) &&
               sym::provably_equal(rotation.start + length(cat.operands[0]), rotation.size, facts) &&
               sym::provably_less(graph.context->constant(0), rotation.size, facts);
  return joins ? std::optional(rotation) : std::nullopt;
}

// The rotation that alone reads this one, before any write-back could change what this one reads.
bool is_joined_later(const Lowering& lowering, graph::NodeId id) {
  const graph::Graph& graph = lowering.graph;
  graph::ValueId value = graph.nodes[id].results[0];
  if (lowering.uses[value] != 2) return false;
  for (graph::NodeId next(id.index + 1); next < graph.nodes.end_id(); ++next.index) {
    const graph::Node& node = graph.nodes[next];
    if (node.op == graph::Op::assign) return false;
    std::optional<Rotation> rotation = rotation_of(graph, node, lowering.facts);
    if (rotation && rotation->value == value)
      return lowering.uses[node.operands[0]] == 1 && lowering.uses[node.operands[1]] == 1;
  }
  return false;
}

void lower_rotation(Lowering& lowering, graph::NodeId id, Rotation rotation) {
  const graph::Graph& graph = lowering.graph;
  const graph::Node& node = graph.nodes[id];
  KernelDraft draft(lowering, id, node_name(graph, id));
  Position position = draft.open_loops(graph.type(node.results[0]).shape), source = position;
  for (;;) {
    sym::Expr& along = source[rotation.dim];
    along = sym::simplify(sym::mod(along + rotation.start, rotation.size), draft.facts());
    const graph::Node& inner = graph.nodes[graph.values[rotation.value].producer];
    if (inner.op != graph::Op::cat || !std::holds_alternative<Mapped>(lowering.places[rotation.value])) break;
    rotation = *rotation_of(graph, inner, lowering.facts);
  }
  loop::ValueId value = draft.read(rotation.value, source);
  draft.store(place_in_new_buffer(lowering, node.results[0]), position, value);
  draft.finish();
}

}  // namespace

void lower_cat(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  if (std::optional<Rotation> rotation = rotation_of(lowering.graph, node, lowering.facts)) {
    if (is_joined_later(lowering, id))
      lowering.places[node.results[0]] = Mapped{id};  // read by lower_rotation alone
    else
      lower_rotation(lowering, id, *rotation);
    return;
  }
  Strided slice = place_in_new_buffer(lowering, node.results[0]);
  size_t rank = lowering.graph.type(node.results[0]).rank();
  size_t dim = static_cast<size_t>(node.get<int64_t>(Attr::dim));
  int pieces = 0;
  for (graph::ValueId piece : node.operands) {
    const std::vector<sym::Expr>& shape = lowering.graph.type(piece).shape;
    // torch lets an empty 1-d tensor stand beside pieces of any rank.
    if (shape.size() != rank || shape[dim].is_constant(0)) continue;
    KernelDraft draft(lowering, id, node_name(lowering.graph, id));
    Position position = draft.open_loops(shape);
    draft.store(slice, position, draft.read(piece, position));
    draft.finish();
    slice.offset = slice.offset + shape[dim] * slice.strides[dim];
    ++pieces;
  }
  if (pieces > 1) lowering.program.buffers[slice.buffer].pieces = pieces;
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
    sym::Expr at = sym::simplify(position[d] - low[d], draft.facts());
    if (!sym::provably_less_equal(low[d], zero, draft.facts()))
      require(draft, inside, ops::ScalarOp::ge, at, zero);
    if (!sym::provably_less_equal(high[d], zero, draft.facts()))
      require(draft, inside, ops::ScalarOp::lt, at, source[d]);
    inner[d] = source[d].is_constant(1) ? zero : at;
  }
  std::optional<Mask> mask;
  if (inside) mask = Mask{*inside, draft.builder().constant(node.get<Scalar>(Attr::value))};
  draft.store(place_in_new_buffer(lowering, node.results[0]), position,
              draft.read(node.operands[0], inner, mask));
  draft.finish();
}

}  // namespace kerf::lower
