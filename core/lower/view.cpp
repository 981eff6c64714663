#include "lower/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "graph/build.h"
#include "sym/simplify.h"

namespace kerf::lower {

namespace {

using graph::Attr;
using Shape = std::vector<sym::Expr>;

// Dimensions [in_begin, in_end) of the operand and [out_begin, out_end) of the view that hold the same elements in
// row-major order, whatever the other dimensions are.
struct Group {
  size_t in_begin, in_end, out_begin, out_end;
};

// Cuts a reshape wherever the products of leading dimensions meet: [2, 3, 4] -> [6, 2, 2] gives {2, 3 | 6} and
// {4 | 2, 2}. Products that are equal for a reason that only ranges know give larger groups, which is correct.
std::vector<Group> matching_groups(sym::Context& context, const Shape& in, const Shape& out) {
  std::vector<Group> groups;
  size_t in_begin = 0, out_begin = 0;
  for (size_t out_end = 1; out_end <= out.size(); ++out_end) {
    sym::Expr wanted = sym::product(context, std::span(out).subspan(out_begin, out_end - out_begin));
    sym::Expr product = context.constant(1);
    for (size_t in_end = in_begin + 1; in_end <= in.size(); ++in_end) {
      product = product * in[in_end - 1];
      if (product != wanted) continue;
      groups.push_back({in_begin, in_end, out_begin, out_end});
      in_begin = in_end;
      out_begin = out_end;
      break;
    }
  }
  if (in_begin < in.size() || out_begin < out.size())
    groups.push_back({in_begin, in.size(), out_begin, out.size()});
  return groups;
}

// A dimension that takes no part in dividing a row-major position: index 0 is its only one, or it has none.
bool is_trivial(sym::Expr extent) { return extent.is_constant(0) || extent.is_constant(1); }

// The position in dimensions [begin, end) of `shape` of a row-major position.
void delinearize(sym::Expr linear, const Shape& shape, size_t begin, size_t end, const sym::Facts& facts,
                 Position& out) {
  size_t first = begin;
  while (first < end && is_trivial(shape[first])) ++first;
  for (size_t d = end; d-- > begin;) {
    if (is_trivial(shape[d])) {
      out[d] = linear.context().constant(0);
    } else if (d == first) {
      out[d] = sym::simplify(linear, facts);
    } else {
      out[d] = sym::simplify(sym::mod(linear, shape[d]), facts);
      linear = sym::simplify(sym::floor_div(linear, shape[d]), facts);
    }
  }
}

Position reshaped_position(sym::Context& context, const Shape& in, const Shape& out, const Position& position,
                           const sym::Facts& facts) {
  Position source(in.size());
  for (const Group& group : matching_groups(context, in, out)) {
    std::span shape = std::span(out).subspan(group.out_begin, group.out_end - group.out_begin);
    std::span part = std::span(position).subspan(group.out_begin, shape.size());
    sym::Expr linear = linear_index(context, part, graph::contiguous_strides(context, shape));
    delinearize(linear, in, group.in_begin, group.in_end, facts, source);
  }
  return source;
}

// The stride between neighbours in row-major order within [begin, end), if there is one.
std::optional<sym::Expr> inner_stride(sym::Context& context, const Shape& shape, const Strided& source,
                                      size_t begin, size_t end, const sym::Facts& facts) {
  std::optional<sym::Expr> inner;
  sym::Expr next;  // what the stride of the next dimension outwards must be
  for (size_t d = end; d-- > begin;) {
    if (shape[d].is_constant(1)) continue;
    if (!inner) {
      inner = source.strides[d];
    } else if (!sym::provably_equal(source.strides[d], next, facts)) {
      return std::nullopt;
    }
    next = source.strides[d] * shape[d];
  }
  return inner ? inner : context.constant(1);
}

std::optional<Strided> reshaped(sym::Context& context, const Shape& in, const Shape& out,
                                const Strided& source, const sym::Facts& facts) {
  Strided result = source;
  if (std::any_of(in.begin(), in.end(), [](sym::Expr extent) { return extent.is_constant(0); })) {
    result.strides = graph::contiguous_strides(context, out);
    return result;
  }
  result.strides.assign(out.size(), sym::Expr());
  for (const Group& group : matching_groups(context, in, out)) {
    std::optional<sym::Expr> inner = inner_stride(context, in, source, group.in_begin, group.in_end, facts);
    if (!inner) return std::nullopt;
    sym::Expr stride = *inner;
    for (size_t d = group.out_end; d-- > group.out_begin;) {
      result.strides[d] = stride;
      stride = stride * out[d];
    }
  }
  return result;
}

Strided permuted(const graph::Node& view, Strided source) {
  const auto& dims = view.get<std::vector<int64_t>>(Attr::dims);
  std::vector<sym::Expr> strides;
  for (int64_t dim : dims) strides.push_back(source.strides[static_cast<size_t>(dim)]);
  source.strides = std::move(strides);
  return source;
}

Strided expanded(sym::Context& context, const Shape& in, const Shape& out, Strided source) {
  size_t added = out.size() - in.size();
  std::vector<sym::Expr> strides(added, context.constant(0));
  for (size_t d = 0; d < in.size(); ++d) {
    bool repeated = in[d].is_constant(1) && !out[added + d].is_constant(1);
    strides.push_back(repeated ? context.constant(0) : source.strides[d]);
  }
  source.strides = std::move(strides);
  return source;
}

Strided sliced(const graph::Node& view, Strided source) {
  size_t dim = static_cast<size_t>(view.get<int64_t>(Attr::dim));
  source.offset = source.offset + view.get<sym::Expr>(Attr::start) * source.strides[dim];
  source.strides[dim] = source.strides[dim] * view.get<sym::Expr>(Attr::step);
  return source;
}

Strided flipped(const graph::Node& view, const Shape& in, Strided source) {
  for (int64_t dim : view.get<std::vector<int64_t>>(Attr::dims)) {
    size_t d = static_cast<size_t>(dim);
    source.offset = source.offset + (in[d] - 1) * source.strides[d];
    source.strides[d] = sym::neg(source.strides[d]);
    if (!in[d].is_constant(1)) source.flipped = true;
  }
  return source;
}

// The view's strides over a source of any strides, if its addresses are affine in the position: a diagonal of an
// expanded tensor, say.
std::optional<Strided> affine_view(const graph::Graph& graph, const graph::Node& view, Strided source,
                                   sym::Facts facts) {
  sym::Context& context = *graph.context;
  const Shape& shape = graph.type(view.results[0]).shape;
  Position position;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d].is_constant(1)) {
      position.push_back(context.constant(0));
      continue;
    }
    position.push_back(context.symbol(fmt::format("i{}", d), sym::SymbolKind::axis));
    facts.set_extent(position.back(), shape[d]);
  }
  Position at = source_position(graph, view, position, facts);
  sym::Expr address = sym::simplify(source.offset + linear_index(context, at, source.strides), facts);
  source.strides = view.get<Shape>(Attr::strides);  // those of dimensions of one element stay
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d].is_constant(1)) continue;
    std::optional<sym::Affine> affine = sym::affine_in(address, position[d]);
    if (!affine) return std::nullopt;
    for (sym::Expr other : position)
      if (other.is_symbol() && sym::mentions(affine->coefficient, other)) return std::nullopt;
    source.strides[d] = affine->coefficient;
    address = affine->rest;
  }
  source.offset = address;
  return source;
}

std::optional<Strided> restrided(const graph::Graph& graph, const graph::Node& view, Strided source,
                                 const sym::Facts& facts) {
  const Shape& in = graph.type(view.operands[0]).shape;
  if (!same_strides(in, source.strides, graph::contiguous_strides(*graph.context, in), facts))
    return affine_view(graph, view, source, facts);
  source.offset = source.offset + view.get<sym::Expr>(Attr::offset);
  source.strides = view.get<Shape>(Attr::strides);
  return source;
}

std::optional<Strided> strided_view(const graph::Graph& graph, const graph::Node& view, const Strided& source,
                                    const sym::Facts& facts) {
  sym::Context& context = *graph.context;
  const Shape& in = graph.type(view.operands[0]).shape;
  const Shape& out = graph.type(view.results[0]).shape;
  switch (view.op) {
    case graph::Op::permute: return permuted(view, source);
    case graph::Op::reshape: return reshaped(context, in, out, source, facts);
    case graph::Op::expand: return expanded(context, in, out, source);
    case graph::Op::slice: return sliced(view, source);
    case graph::Op::flip: return flipped(view, in, source);
    case graph::Op::as_strided: return restrided(graph, view, source, facts);
    default: UNREACHABLE("{} is not a view", graph::info(view.op).text);
  }
}

}  // namespace

Position broadcast_position(std::span<const sym::Expr> operand_shape, const Position& position) {
  CHECK(operand_shape.size() <= position.size(), "an operand of rank {} at a position of rank {}",
        operand_shape.size(), position.size());
  Position source(position.end() - static_cast<std::ptrdiff_t>(operand_shape.size()), position.end());
  for (size_t d = 0; d < source.size(); ++d)
    if (operand_shape[d].is_constant(1)) source[d] = operand_shape[d].context().constant(0);
  return source;
}

Position source_position(const graph::Graph& graph, const graph::Node& view, const Position& position,
                         const sym::Facts& facts) {
  sym::Context& context = *graph.context;
  const Shape& in = graph.type(view.operands[0]).shape;
  const Shape& out = graph.type(view.results[0]).shape;
  Position source = position;
  switch (view.op) {
    case graph::Op::permute: {
      const auto& dims = view.get<std::vector<int64_t>>(Attr::dims);
      for (size_t d = 0; d < dims.size(); ++d) source[static_cast<size_t>(dims[d])] = position[d];
      return source;
    }
    case graph::Op::reshape: return reshaped_position(context, in, out, position, facts);
    case graph::Op::expand: return broadcast_position(in, position);
    case graph::Op::slice: {
      sym::Expr& index = source[static_cast<size_t>(view.get<int64_t>(Attr::dim))];
      index = view.get<sym::Expr>(Attr::start) + view.get<sym::Expr>(Attr::step) * index;
      return source;
    }
    case graph::Op::flip:
      for (int64_t dim : view.get<std::vector<int64_t>>(Attr::dims)) {
        size_t d = static_cast<size_t>(dim);
        source[d] = in[d] - 1 - position[d];
      }
      return source;
    case graph::Op::as_strided: {
      sym::Expr linear = view.get<sym::Expr>(Attr::offset) +
                         linear_index(context, position, view.get<std::vector<sym::Expr>>(Attr::strides));
      source.assign(in.size(), sym::Expr());
      delinearize(linear, in, 0, in.size(), facts, source);
      return source;
    }
    default: UNREACHABLE("{} is not a view", graph::info(view.op).text);
  }
}

Place place_of_view(const graph::Graph& graph, graph::NodeId id, const Place& source,
                    const sym::Facts& facts) {
  const graph::Node& view = graph.nodes[id];
  CHECK(!std::holds_alternative<Absent>(source), "a view of a value that is not lowered");
  if (std::holds_alternative<Uniform>(source)) return source;
  if (const auto* strided = std::get_if<Strided>(&source))
    if (std::optional<Strided> result = strided_view(graph, view, *strided, facts)) {
      for (sym::Expr& stride : result->strides) stride = sym::simplify(stride, facts);
      result->offset = sym::simplify(result->offset, facts);
      return *result;
    }
  return Mapped{id};
}

}  // namespace kerf::lower
