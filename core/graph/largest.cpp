#include "graph/largest.h"

namespace kerf::graph {

namespace {

using ops::ReduceOp;

// start + step * position, where position is the row-major one in dimensions of these sizes.
Term plane_positions(Builder& builder, const std::vector<sym::Expr>& sizes, int64_t start, int64_t step) {
  sym::Context& context = builder.context();
  sym::Expr elements = sym::product(context, sizes);
  ValueId line = builder.iota(elements, context.constant(start), context.constant(step), DType::i64);
  return {builder, builder.reshape(line, sizes)};
}

// The largest of floats with the sign of the first of equal zeros: the fold of the maximum orders them.
Term with_sign_of_first(const Term& seen, const Term& largest, const std::vector<Windows>& windows,
                        const std::vector<int64_t>& dims) {
  Builder& builder = seen.builder();
  sym::Context& context = builder.context();
  std::vector<sym::Expr> extents;
  for (const Windows& along : windows) extents.push_back(along.extent);
  // Twice the element's number in its window, and 1 more for a minus.
  ValueId numbers =
      builder.iota(sym::product(context, extents), context.constant(0), context.constant(2), DType::i32);
  Term minus = apply(ops::ScalarOp::signbit, seen).in(DType::i32), is_zero = equal(seen, 0.0);
  Term key = Term(builder, builder.reshape(numbers, extents)) + minus;
  Term first = reduce(ReduceOp::min, where(is_zero, key, 0x7fffffff), dims, true);
  Term negative = not_equal(apply(ops::ScalarOp::and_, first, 1.0), 0.0);
  Term zero = where(negative, Term(-0.0).like(largest), 0.0), is_largest = equal(largest, 0.0);
  return where(is_largest, zero, largest);
}

}  // namespace

// Eager's loop takes the first of equals, and the last NaN if there is one. Positions of NaN count down from
// -1, so that the least wins; an element outside, which may equal the largest of a window of infinities, comes last.
Largest largest_of(const Term& seen, const std::vector<Windows>& windows,
                   const std::vector<sym::Expr>& sizes) {
  Builder& builder = seen.builder();
  std::vector<int64_t> dims = window_dims(seen, windows.size());
  Term largest = reduce(ReduceOp::max, seen, dims, true);
  Term key = where(equal(seen, largest), window(plane_positions(builder, sizes, 0, 1), windows, kNoPosition),
                   kNoPosition);
  if (is_floating(seen.dtype()))
    key = where(isnan(seen), window(plane_positions(builder, sizes, -1, -1), windows, kNoPosition), key);
  Term first = reduce(ReduceOp::min, key, dims, false);
  if (is_floating(seen.dtype())) largest = with_sign_of_first(seen, largest, windows, dims);
  Term values(builder, builder.reshape(largest, first.type().shape));
  return {values, where(less(first, 0.0), -1.0 - first, first)};
}

Term gradient_of_largest(const Term& grad, const Term& positions, const std::vector<Windows>& windows,
                         const std::vector<sym::Expr>& sizes) {
  Builder& builder = grad.builder();
  Term chosen = window(positions, windows, -1), share = window(grad, windows, 0).computing();
  std::vector<sym::Expr> shape = sizes;
  shape.resize(2 * sizes.size(), builder.context().constant(1));
  Term own(builder, builder.reshape(plane_positions(builder, sizes, 0, 1), shape));
  return sum(where(equal(chosen, own), share, 0.0), window_dims(share, windows.size()), false);
}

}  // namespace kerf::graph
