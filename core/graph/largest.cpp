#include "graph/largest.h"

#include <algorithm>
#include <limits>

namespace kerf::graph {

namespace {

using ops::ReduceOp;
using ops::ScalarOp;

// An integer over sizes in the dtype of `like`.
Term number(sym::Expr expr, const Term& like) {
  Builder& builder = like.builder();
  if (expr.is_constant()) return {builder, builder.constant(Scalar::of_int(like.dtype(), expr.constant()))};
  return Term(builder, builder.size_value(expr)).in(like.dtype());
}

// Where the windows along one dimension begin, times `stride`: [count], i64. It may be before the dimension.
Term starts(Builder& builder, const Windows& along, sym::Expr size, sym::Expr stride) {
  if (along.divisor.is_constant(1))
    return {builder, builder.iota(along.count, along.shift * stride, along.scale * stride, DType::i64)};
  Windows first = along;
  first.extent = builder.context().constant(1);
  ValueId positions = builder.iota(size, builder.context().constant(0), stride, DType::i64);
  Term seen = window({builder, positions}, {first}, kNoPosition);
  return {builder, builder.reshape(seen, {along.count})};
}

// How many elements of each window along one dimension lie before the dimension: [count], i64.
Term steps_before(Builder& builder, const Windows& along) {
  Term before = -starts(builder, along, {}, builder.context().constant(1));
  int64_t step = along.dilation.constant();
  before = maximum(before, 0.0);
  if (step == 1) return before;
  return apply(ScalarOp::trunc_div, before + static_cast<double>(step - 1), static_cast<double>(step));
}

// Whether windows may begin before the dimension; these step by a constant.
bool may_begin_before(const Windows& along) {
  return !along.shift.is_constant() || along.shift.constant() < 0;
}

// 32 bits where they hold every position: their divisions are the cheaper ones.
DType position_dtype(const std::vector<Windows>& windows, const std::vector<sym::Expr>& sizes) {
  int64_t elements = 1;
  for (size_t d = 0; d < windows.size(); ++d) {
    if (!windows[d].extent.is_constant() || !sizes[d].is_constant()) return DType::i64;
    int64_t longest = std::max<int64_t>({windows[d].extent.constant(), sizes[d].constant(), 1});
    if (longest > std::numeric_limits<int32_t>::max() / elements) return DType::i64;
    elements *= longest;
  }
  return DType::i32;
}

// The positions in the plane of the elements with these row-major positions in their windows. `is_lost`: all of the window is
// as small as what is outside of it, so that the position may be outside; the first one inside is meant.
Term in_plane(const Term& within, const Term& is_lost, const std::vector<Windows>& windows,
              const std::vector<sym::Expr>& sizes) {
  Builder& builder = within.builder();
  sym::Expr stride = builder.context().constant(1);
  Term rest = within.in(position_dtype(windows, sizes));
  std::optional<Term> offset, start;
  for (size_t d = windows.size(); d-- > 0; stride = stride * sizes[d]) {
    const Windows& along = windows[d];
    Term element = rest;
    if (d > 0) {
      Term extent = number(along.extent, rest);
      Term further = apply(ScalarOp::trunc_div, rest, extent);
      element = rest - further * extent;
      rest = further;
    }
    if (may_begin_before(along))
      element = where(is_lost, placed(steps_before(builder, along), {d}, windows.size()).in(element.dtype()),
                      element);
    Term moved = element * number(along.dilation * stride, element);
    Term begin = placed(starts(builder, along, sizes[d], stride), {d}, windows.size());
    offset = offset ? *offset + moved : moved;
    start = start ? *start + begin : begin;
  }
  return *start + offset->in(DType::i64);
}

}  // namespace

Largest largest_of(const Term& seen, const std::vector<Windows>& windows,
                   const std::vector<sym::Expr>& sizes) {
  std::vector<int64_t> dims = window_dims(seen, windows.size());
  Term values = reduce(ReduceOp::first_max, seen, dims, false);
  Term within = reduce(ReduceOp::argmax_last_nan, seen, dims, false);
  double least = convert(ops::identity(ReduceOp::max, seen.dtype()), DType::f64).f;
  return {values, in_plane(within, equal(values, least), windows, sizes)};
}

Term gradient_of_largest(const Term& grad, const Term& positions, const std::vector<Windows>& windows,
                         const std::vector<sym::Expr>& sizes) {
  Builder& builder = grad.builder();
  sym::Context& context = builder.context();
  Term chosen = window(positions, windows, -1), share = window(grad, windows, 0).computing();
  std::vector<sym::Expr> shape = sizes;
  shape.resize(2 * sizes.size(), context.constant(1));
  ValueId line =
      builder.iota(sym::product(context, sizes), context.constant(0), context.constant(1), DType::i64);
  Term own(builder, builder.reshape(line, shape));
  return sum(where(equal(chosen, own), share, 0.0), window_dims(share, windows.size()), false);
}

}  // namespace kerf::graph
