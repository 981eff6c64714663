// Values written into a part of another: gradients of slices, selections and diagonals, and the scatters of views. All but
// as_strided's read: every element of the result asks which element of the source, if any, lies there.
#include <algorithm>

#include "graph/import_call.h"
#include "graph/strided.h"
#include "graph/window.h"
#include "sym/simplify.h"

namespace kerf::graph {

namespace {

// `x` in a tensor of zeros that is longer along one dimension.
ValueId zeros_around(const ImportCall& call, const Term& x, size_t dim, sym::Expr before, sym::Expr after) {
  Shape low(x.type().rank(), call.constant(0)), high = low;
  low[dim] = before;
  high[dim] = after;
  return call.builder.node(
      Op::pad, {x}, {{Attr::value, Scalar::of(x.dtype(), 0)}, {Attr::low, low}, {Attr::high, high}}, {})[0];
}

// The permutation that moves `dim` to the end, or from there back to its place.
std::vector<int64_t> moved_last(size_t rank, size_t dim, bool back) {
  std::vector<int64_t> order;
  for (size_t d = 0; d < rank; ++d)
    if (d != dim) order.push_back(static_cast<int64_t>(d));
  order.push_back(static_cast<int64_t>(dim));
  if (!back) return order;
  std::vector<int64_t> inverse(rank);
  for (size_t d = 0; d < rank; ++d) inverse[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
  return inverse;
}

// Elements of the source at start, start + step, ... along `dim` of `around`, its own elements elsewhere.
Term spread(const ImportCall& call, const Term& source, const Term& around, size_t dim, sym::Expr start,
            sym::Expr step) {
  size_t rank = source.type().rank();
  sym::Expr size = around.type().shape[dim], length = source.type().shape[dim], one = call.constant(1);
  // Without elements there is nothing to read.
  if (length.is_constant(0) || size.is_constant(0)) return around;
  std::vector<Windows> windows = {{size, one, one, sym::neg(start), step, one}};
  Term last = call.term(call.builder.permute(source, moved_last(rank, dim, false)));
  Term seen = window(last, windows, 0);
  Shape flat(seen.type().shape.begin(), seen.type().shape.end() - 1);
  seen = call.term(call.builder.permute(call.builder.reshape(seen, flat), moved_last(rank, dim, true)));
  Term there = equal(window_positions(call.builder, windows, 0, length, start, step, -kNoPosition),
                     own_positions(call.builder, size, 0, 2));
  return where(placed(call.term(call.builder.reshape(there, {size})), {dim}, rank), seen, around);
}

Term zeros(const ImportCall& call, const Shape& shape, DType dtype) {
  return call.term(call.builder.full(shape, Scalar::of(dtype, 0)));
}

// The source on a diagonal of the last two dimensions of `around`.
Term on_diagonal(const ImportCall& call, const Term& source, const Term& around, int64_t offset) {
  size_t rank = around.type().rank();
  sym::Expr rows = around.type().shape[rank - 2], columns = around.type().shape[rank - 1];
  sym::Expr length = source.type().shape.back();
  if (length.is_constant(0)) return around;
  bool by_row = offset >= 0;  // the diagonal begins in the first row: its elements count rows
  sym::Expr missing = sym::simplify((by_row ? rows : columns) - length, call.facts());
  ValueId line = zeros_around(call, source, rank - 2, call.constant(0), missing);
  auto dim = static_cast<int64_t>(by_row ? rank - 1 : rank - 2);
  Term own = own_positions(call.builder, columns, rank - 1, rank) -
             own_positions(call.builder, rows, rank - 2, rank);
  return where(equal(own, static_cast<double>(offset)), call.term(call.builder.unsqueeze(line, dim)), around);
}

// source (or gradient) on the diagonal of `around`; offset, dim1, dim2 from argument `at` on.
Imported diagonal(const ImportCall& call, const Term& source, const Term& around, size_t at) {
  size_t rank = around.type().rank();
  auto first = static_cast<size_t>(call.dim(at + 1, rank)),
       second = static_cast<size_t>(call.dim(at + 2, rank));
  std::vector<int64_t> order;
  for (size_t d = 0; d < rank; ++d)
    if (d != first && d != second) order.push_back(static_cast<int64_t>(d));
  order.insert(order.end(), {static_cast<int64_t>(first), static_cast<int64_t>(second)});
  std::vector<int64_t> inverse(rank);
  for (size_t d = 0; d < rank; ++d) inverse[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
  Term moved = call.term(call.builder.permute(around, order));
  return one(call.builder.copy(
      call.builder.permute(on_diagonal(call, source, moved, call.integer(at)), inverse), around.dtype()));
}

}  // namespace

// grad, input_sizes, dim, start, end, step
Imported import_slice_backward(const ImportCall& call) {
  Term grad = call.tensor(0);
  const Shape& shape = call.result().shape;
  auto at = static_cast<size_t>(call.dim(2, shape.size()));
  sym::Expr step = call.is_none(5) ? call.constant(1) : call.size(5);
  sym::Expr start = clamped_position(call, call.is_none(3) ? call.constant(0) : call.size(3), shape[at]);
  if (step.is_constant(1))
    return one(zeros_around(call, grad, at, start, shape[at] - start - grad.type().shape[at]));
  return one(call.builder.copy(spread(call, grad, zeros(call, shape, grad.dtype()), at, start, step),
                               call.result().dtype));
}

// grad, input_sizes, dim, index
Imported import_select_backward(const ImportCall& call) {
  const Shape& shape = call.result().shape;
  int64_t dim = call.dim(2, shape.size());
  auto at = static_cast<size_t>(dim);
  sym::Expr start = clamped_position(call, call.size(3), shape[at]);
  Term row = call.term(call.builder.unsqueeze(call.tensor(0), dim));
  return one(zeros_around(call, row, at, start, shape[at] - start - 1));
}

// self, src, dim, start, end, step
Imported import_slice_scatter(const ImportCall& call) {
  Term data = call.tensor(0), source = call.tensor(1).in(call.result().dtype);
  auto dim = static_cast<size_t>(call.dim(2, data.type().rank()));
  sym::Expr start =
      clamped_position(call, call.is_none(3) ? call.constant(0) : call.size(3), data.type().shape[dim]);
  sym::Expr step = call.is_none(5) ? call.constant(1) : call.size(5);
  return one(call.builder.copy(spread(call, source, data, dim, start, step), data.dtype()));
}

// self, src, dim, index
Imported import_select_scatter(const ImportCall& call) {
  Term data = call.tensor(0), source = call.tensor(1).in(call.result().dtype);
  int64_t dim = call.dim(2, data.type().rank());
  auto at = static_cast<size_t>(dim);
  sym::Expr start = clamped_position(call, call.size(3), data.type().shape[at]);
  Term row = call.term(call.builder.unsqueeze(source, dim));
  return one(call.builder.copy(spread(call, row, data, at, start, call.constant(1)), data.dtype()));
}

// self, src, offset, dim1, dim2
Imported import_diagonal_scatter(const ImportCall& call) {
  Term data = call.tensor(0);
  return diagonal(call, call.tensor(1).in(data.dtype()), data, 2);
}

// grad, input_sizes, offset, dim1, dim2
Imported import_diagonal_backward(const ImportCall& call) {
  Term grad = call.tensor(0);
  return diagonal(call, grad, zeros(call, call.result().shape, grad.dtype()), 2);
}

// self, src, size, stride, storage_offset. Places of self's storage, which import_as_strided knows where it may.
Imported import_as_strided_scatter(const ImportCall& call) {
  Term data = call.tensor(0), source = call.tensor(1).in(call.tensor(0).dtype());
  Result<Strided> at = read_strided(call, data, 2);
  if (!at) return Unsupported{at.reason()};
  const Shape& shape = at->shape;
  if (std::ranges::any_of(shape, [](sym::Expr extent) { return extent.is_constant(0); }))
    return one(call.builder.copy(data, data.dtype()));
  size_t rank = std::max<size_t>(shape.size(), 1);
  Term index = placed(
      call.term(call.builder.iota(call.constant(1), at->offset, call.constant(1), DType::i64)), {0}, rank);
  for (size_t d = 0; d < shape.size(); ++d)
    index =
        index + placed(call.term(call.builder.iota(shape[d], call.constant(0), at->strides[d], DType::i64)),
                       {d}, rank);
  Term flat = call.term(call.builder.reshape(data, {sym::product(call.context(), data.type().shape)}));
  if (shape.empty()) source = call.term(call.builder.unsqueeze(source, 0));
  ValueId put = call.builder.node(Op::index_put, {flat, source, index},
                                  {{Attr::dims, std::vector<int64_t>{0}},
                                   {Attr::wrap, false},
                                   {Attr::dim, int64_t{0}},
                                   {Attr::accumulate, false}},
                                  {})[0];
  return one(call.builder.reshape(put, data.type().shape));
}

}  // namespace kerf::graph
