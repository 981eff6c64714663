#include "graph/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/shape.h"

namespace kerf::graph {

namespace {

using Attributes = std::vector<std::pair<Attr, AttrValue>>;

// NaN has many bit patterns and one text.
Scalar canonical(Scalar value) {
  return is_floating(value.dtype) && value.f != value.f
             ? Scalar::of(value.dtype, std::numeric_limits<double>::quiet_NaN())
             : value;
}

}  // namespace

SourceId Builder::add_source(const std::string& text) {
  // Sources that other builders of this graph added.
  for (size_t i = source_ids_.size(); i < graph_.sources.size(); ++i)
    source_ids_.emplace(graph_.sources[SourceId(i)], SourceId(i));
  auto [found, inserted] = source_ids_.emplace(text, graph_.sources.end_id());
  if (inserted) graph_.sources.push_back(text);
  return found->second;
}

std::vector<ValueId> Builder::node(Op op, std::vector<ValueId> operands, Attributes attributes,
                                   std::vector<TensorType> results) {
  std::ranges::sort(attributes, {}, &std::pair<Attr, AttrValue>::first);
  Node node{.op = op,
            .operands = std::move(operands),
            .results = {},
            .attributes = std::move(attributes),
            .source = source_};
  Result<std::vector<TensorType>> types = infer_types(graph_, node, results);
  CHECK(types, "{}: {}", info(op).text, types.reason());
  NodeId id = graph_.nodes.end_id();
  for (uint32_t i = 0; i < types->size(); ++i)
    node.results.push_back(
        graph_.values.push_back({.type = std::move((*types)[i]), .producer = id, .result = i}));
  std::vector<ValueId> values = node.results;
  graph_.nodes.push_back(std::move(node));
  return values;
}

ValueId Builder::input(int index, TensorType type) {
  return node(Op::input, {}, {{Attr::index, int64_t{index}}}, {std::move(type)})[0];
}

ValueId Builder::constant(Scalar value) {
  return node(Op::constant, {}, {{Attr::value, canonical(value)}}, {})[0];
}

ValueId Builder::full(const std::vector<sym::Expr>& shape, Scalar value) {
  return expand(constant(value), shape);
}

ValueId Builder::iota(sym::Expr length, sym::Expr start, sym::Expr step, DType dtype) {
  ValueId positions = node(
      Op::iota, {},
      {{Attr::dtype, DType::i64}, {Attr::shape, Shape{length}}, {Attr::start, start}, {Attr::step, step}},
      {})[0];
  return cast(positions, dtype);
}

ValueId Builder::size_value(sym::Expr size) {
  if (size.is_constant()) return constant(Scalar::of_int(DType::i64, size.constant()));
  return reshape(iota(context().constant(1), size, context().constant(0), DType::i64), {});
}

ValueId Builder::apply(ops::ScalarOp op, std::initializer_list<ValueId> operands) {
  return apply(op, std::span(operands.begin(), operands.size()));
}

ValueId Builder::apply(ops::ScalarOp op, std::span<const ValueId> operands) {
  return node(Op::apply, {operands.begin(), operands.end()}, {{Attr::op, op}}, {})[0];
}

ValueId Builder::cast(ValueId value, DType dtype) {
  return type(value).dtype == dtype ? value : copy(value, dtype);
}

ValueId Builder::copy(ValueId value, DType dtype) {
  return node(Op::cast, {value}, {{Attr::dtype, dtype}}, {})[0];
}

ValueId Builder::reduce(ops::ReduceOp op, ValueId value, std::vector<int64_t> dims, bool keepdim) {
  std::ranges::sort(dims);
  Shape kept = type(value).shape;
  for (int64_t dim : dims) kept[static_cast<size_t>(dim)] = context().constant(1);
  ValueId reduced = node(Op::reduce, {value}, {{Attr::op, op}, {Attr::dims, std::move(dims)}}, {})[0];
  return keepdim ? reshape(reduced, kept) : reduced;
}

ValueId Builder::permute(ValueId value, std::vector<int64_t> dims) {
  if (std::ranges::is_sorted(dims)) return value;
  return node(Op::permute, {value}, {{Attr::dims, std::move(dims)}}, {})[0];
}

ValueId Builder::reshape(ValueId value, std::vector<sym::Expr> shape) {
  if (type(value).shape == shape) return value;
  return node(Op::reshape, {value}, {{Attr::shape, std::move(shape)}}, {})[0];
}

ValueId Builder::expand(ValueId value, std::vector<sym::Expr> shape) {
  if (type(value).shape == shape) return value;
  return node(Op::expand, {value}, {{Attr::shape, std::move(shape)}}, {})[0];
}

ValueId Builder::slice(ValueId value, int64_t dim, sym::Expr start, sym::Expr length, int64_t step) {
  Shape shape = type(value).shape;
  if (start.is_constant(0) && step == 1 && shape[static_cast<size_t>(dim)] == length) return value;
  shape[static_cast<size_t>(dim)] = length;
  TensorType sliced{
      .dtype = type(value).dtype, .shape = shape, .strides = contiguous_strides(context(), shape)};
  return node(Op::slice, {value},
              {{Attr::dim, dim}, {Attr::start, start}, {Attr::step, context().constant(step)}},
              {std::move(sliced)})[0];
}

ValueId Builder::flip(ValueId value, std::vector<int64_t> dims) {
  if (dims.empty()) return value;
  std::ranges::sort(dims);
  return node(Op::flip, {value}, {{Attr::dims, std::move(dims)}}, {})[0];
}

ValueId Builder::squeeze(ValueId value, int64_t dim) {
  Shape shape = type(value).shape;
  shape.erase(shape.begin() + dim);
  return reshape(value, shape);
}

ValueId Builder::unsqueeze(ValueId value, int64_t dim) {
  Shape shape = type(value).shape;
  shape.insert(shape.begin() + dim, context().constant(1));
  return reshape(value, shape);
}

std::vector<ValueId> Builder::external(const std::string& name, std::vector<ValueId> operands,
                                       target::ExternArgumentList arguments, const std::string& reason,
                                       std::vector<TensorType> results) {
  return node(Op::external, std::move(operands),
              {{Attr::name, name}, {Attr::arguments, std::move(arguments)}, {Attr::reason, reason}},
              std::move(results));
}

ValueId Builder::assign(ValueId input, ValueId value) { return node(Op::assign, {input, value}, {}, {})[0]; }

std::vector<sym::Expr> broadcast_shapes(std::span<const std::vector<sym::Expr>> shapes,
                                        sym::Context& context) {
  Graph without_facts{.context = &context};
  Result<Shape> shape = broadcast(without_facts, shapes);
  CHECK(shape, "{}", shape.reason());
  return *shape;
}

}  // namespace kerf::graph
