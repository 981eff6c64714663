// Views of views become one, views and casts that change nothing vanish, operands are not expanded where the
// operation broadcasts anyway, and copies go where nobody can tell.
//
// A copy (a cast to the same dtype, the way back of a cast that lost nothing, a sum of single elements) is kept where
// eager promises memory of its own: when an output reaches an input through it, or two outputs would share memory that a
// copy keeps apart. All other values are ours to place.
#include <algorithm>
#include <optional>
#include <set>

#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"
#include "graph/shape.h"

namespace kerf::graph {

namespace {

using Dims = std::vector<int64_t>;

const Node& producer(const Graph& graph, ValueId value) { return graph.nodes[graph.values[value].producer]; }

// A sum begins with +0.0, so it is never -0.0, and neither is what is made of such by moving.
bool is_never_negative_zero(const Graph& graph, ValueId value) {
  std::vector<ValueId> open{value};
  std::set<ValueId> seen{value};  // pieces of one value meet again
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    const Node& node = producer(graph, id);
    if (!is_floating(graph.type(id).dtype)) continue;
    if (node.op == Op::reduce && node.get<ops::ReduceOp>(Attr::op) == ops::ReduceOp::sum) continue;
    if (info(node.op).family != Family::view && node.op != Op::cat) return false;
    for (ValueId operand : node.operands)
      if (seen.insert(operand).second) open.push_back(operand);
  }
  return true;
}

bool sums_single_elements(const Graph& graph, const Node& node) {
  if (node.op != Op::reduce || node.get<ops::ReduceOp>(Attr::op) != ops::ReduceOp::sum) return false;
  const TensorType& type = graph.type(node.operands[0]);
  return std::ranges::all_of(
             node.get<Dims>(Attr::dims),
             [&](int64_t dim) { return type.shape[static_cast<size_t>(dim)].is_constant(1); }) &&
         is_never_negative_zero(graph, node.operands[0]);
}

bool is_copy(const Graph& graph, const Node& node) {
  return (node.op == Op::cast || sums_single_elements(graph, node)) &&
         graph.type(node.operands[0]).dtype == graph.type(node.results[0]).dtype;
}

bool holds_all_of(DType wide, DType narrow) {
  if (narrow == DType::f16 || narrow == DType::bf16) return wide == DType::f32 || wide == DType::f64;
  return narrow == DType::f32 && wide == DType::f64;
}

// Whose elements the node passes on unchanged: a view, a copy, or a cast back from a dtype that held all.
// Nothing if it computes.
std::optional<ValueId> passed_on(const Graph& graph, const Node& node) {
  if (info(node.op).family == Family::view || is_copy(graph, node)) return node.operands[0];
  if (node.op != Op::cast) return std::nullopt;
  DType wide = graph.type(node.operands[0]).dtype, wanted = graph.type(node.results[0]).dtype;
  if (!holds_all_of(wide, wanted)) return std::nullopt;
  const Node* inner = &producer(graph, node.operands[0]);
  while (std::optional<ValueId> from = passed_on(graph, *inner)) inner = &producer(graph, *from);
  if (inner->op != Op::cast || graph.type(inner->operands[0]).dtype != wanted) return std::nullopt;
  return inner->operands[0];
}

// How many outputs (and write-backs) end in each memory, and how many of those pass through each copy.
class CopyUses {
 public:
  explicit CopyUses(const Graph& graph)
      : graph_(graph), through_(graph.nodes.size()), ending_(graph.values.size()) {
    for (const Output& output : graph.outputs)
      if (output.kind == Output::Kind::tensor)
        follow(output.value, [&](ValueId id) { ++through_[graph_.values[id].producer]; });
    for (const Node& node : graph.nodes)
      if (node.op == Op::assign)
        follow(node.operands[1], [&](ValueId id) { ++through_[graph_.values[id].producer]; });
  }

  bool needed(ValueId copy) const {
    int through = through_[graph_.values[copy].producer];
    ValueId base = base_of(copy);
    Op op = producer(graph_, base).op;
    bool callers = op == Op::input || op == Op::assign;
    return through > 0 && (callers || through < ending_[base]);
  }

 private:
  // From a value through views and copies to the memory it is in.
  template <class OnCopy>
  void follow(ValueId value, OnCopy on_copy) {
    for (;;) {
      const Node& node = producer(graph_, value);
      std::optional<ValueId> from = passed_on(graph_, node);
      if (!from) break;
      if (info(node.op).family != Family::view) on_copy(value);
      value = *from;
    }
    ++ending_[value];
  }

  ValueId base_of(ValueId value) const {
    while (std::optional<ValueId> from = passed_on(graph_, producer(graph_, value))) value = *from;
    return value;
  }

  const Graph& graph_;
  IdVector<NodeId, int> through_;
  IdVector<ValueId, int> ending_;
};

// Values whose strides somebody sees: outputs and operands of externs.
IdVector<ValueId, char> seen_strides(const Graph& graph) {
  IdVector<ValueId, char> seen(graph.values.size(), 0);
  for (const Output& output : graph.outputs)
    if (output.kind == Output::Kind::tensor) seen[output.value] = 1;
  for (const Node& node : graph.nodes)
    if (node.op == Op::external)
      for (ValueId operand : node.operands) seen[operand] = 1;
  return seen;
}

class Simplifier {
 public:
  explicit Simplifier(const Graph& graph)
      : graph_(graph), rewrite_(graph), copies_(graph), seen_(seen_strides(graph)) {}

  Graph run() {
    for (const Node& node : graph_.nodes)
      if (std::optional<ValueId> simpler = simplified(node))
        stand_in(node, *simpler);
      else
        rewrite_.copy(node, node.op == Op::apply ? narrowed(node) : rewrite_.at(node.operands));
    return rewrite_.finish();
  }

 private:
  Builder& builder() { return rewrite_.builder(); }

  void stand_in(const Node& node, ValueId value) {
    if (seen_[node.results[0]])
      rewrite_.replace(node, {value});
    else
      rewrite_.forward(node.results[0], value);
  }

  // What the node's one result can be instead.
  std::optional<ValueId> simplified(const Node& node) {
    if (node.operands.empty()) return std::nullopt;
    builder().set_source(node.source);
    ValueId in = rewrite_.at(node.operands[0]);
    if (node.op == Op::cast) return cast(node, in);
    if (node.op == Op::reduce) return sum(node, in);
    if (node.op == Op::permute) return permute(node, in);
    if (node.op == Op::reshape) return reshape(node, in);
    if (node.op == Op::expand) return expand(node, in);
    if (node.op == Op::slice) return slice(node, in);
    return std::nullopt;
  }

  const Node& new_producer(ValueId value) { return producer(rewrite_.to(), value); }
  bool same_type(const Node& node, ValueId in) {
    return graph_.type(node.results[0]).shape == builder().type(in).shape;
  }

  std::optional<ValueId> cast(const Node& node, ValueId in) {
    if (is_copy(graph_, node)) return copies_.needed(node.results[0]) ? std::nullopt : std::optional(in);
    const Node& inner = new_producer(in);
    if (inner.op != Op::cast) return std::nullopt;
    ValueId origin = inner.operands[0];
    DType wanted = graph_.type(node.results[0]).dtype;
    if (builder().type(origin).dtype != wanted || !holds_all_of(inner.get<DType>(Attr::dtype), wanted))
      return std::nullopt;
    return copies_.needed(node.results[0]) ? std::nullopt : std::optional(origin);
  }

  std::optional<ValueId> sum(const Node& node, ValueId in) {
    if (!is_copy(graph_, node) || copies_.needed(node.results[0])) return std::nullopt;
    return builder().reshape(in, graph_.type(node.results[0]).shape);
  }

  std::optional<ValueId> permute(const Node& node, ValueId in) {
    Dims dims = node.get<Dims>(Attr::dims);
    const Node& inner = new_producer(in);
    if (inner.op == Op::permute) {
      const Dims& first = inner.get<Dims>(Attr::dims);
      for (int64_t& dim : dims) dim = first[static_cast<size_t>(dim)];
      ValueId origin = inner.operands[0];
      return builder().permute(origin, dims);
    }
    if (std::ranges::is_sorted(dims)) return in;
    return std::nullopt;
  }

  std::optional<ValueId> reshape(const Node& node, ValueId in) {
    if (same_type(node, in)) return in;
    const Node& inner = new_producer(in);
    if (inner.op != Op::reshape) return std::nullopt;
    ValueId origin = inner.operands[0];
    return builder().reshape(origin, graph_.type(node.results[0]).shape);
  }

  std::optional<ValueId> expand(const Node& node, ValueId in) {
    if (same_type(node, in)) return in;
    const Node& inner = new_producer(in);
    if (inner.op != Op::expand) return std::nullopt;
    ValueId origin = inner.operands[0];
    return builder().expand(origin, graph_.type(node.results[0]).shape);
  }

  // A slice of a slice along one dimension: start + step * (start' + step' * i).
  std::optional<ValueId> slice(const Node& node, ValueId in) {
    sym::Expr start = node.get<sym::Expr>(Attr::start), step = node.get<sym::Expr>(Attr::step);
    if (start.is_constant(0) && step.is_constant(1) && same_type(node, in)) return in;
    const Node& inner = new_producer(in);
    int64_t dim = node.get<int64_t>(Attr::dim);
    if (inner.op != Op::slice || inner.get<int64_t>(Attr::dim) != dim) return std::nullopt;
    sym::Expr outer_start = inner.get<sym::Expr>(Attr::start), outer_step = inner.get<sym::Expr>(Attr::step);
    ValueId origin = inner.operands[0];
    sym::Expr length = graph_.type(node.results[0]).shape[static_cast<size_t>(dim)];
    return builder().slice(origin, dim, outer_start + outer_step * start, length,
                           (outer_step * step).constant());
  }

  // Operands of an apply without expands that broadcasting makes again.
  std::vector<ValueId> narrowed(const Node& node) {
    std::vector<ValueId> operands = rewrite_.at(node.operands);
    const Shape& out = graph_.type(node.results[0]).shape;
    for (ValueId& operand : operands) {
      const Node& inner = new_producer(operand);
      if (inner.op != Op::expand) continue;
      ValueId before = operand;
      operand = inner.operands[0];
      std::vector<Shape> shapes;
      for (ValueId value : operands) shapes.push_back(builder().type(value).shape);
      Result<Shape> shape = broadcast(rewrite_.to(), shapes);
      if (!shape || *shape != out) operand = before;
    }
    return operands;
  }

  const Graph& graph_;
  Rewrite rewrite_;
  CopyUses copies_;
  IdVector<ValueId, char> seen_;
};

}  // namespace

Graph simplify_views(const Graph& graph) { return Simplifier(graph).run(); }

}  // namespace kerf::graph
