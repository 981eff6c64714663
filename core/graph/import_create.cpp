// Tensors made from nothing: fills, ranges, triangles. Results have the traced type, so the factories' dtype,
// layout and device arguments say nothing new.
#include "graph/import_call.h"

namespace kerf::graph {

namespace {

// The traced type's shape filled with argument `i`.
Imported filled(const ImportCall& call, size_t i) {
  if (call.is_none(i)) return decline("no value");
  return one(call.builder.expand(call.operand(i, call.result().dtype), call.result().shape));
}

}  // namespace

// zeros, ones, empty and their like: filled with `number`.
Imported import_fill(const ImportCall& call) {
  return one(call.builder.full(call.result().shape, Scalar::of(call.result().dtype, call.row.number)));
}

// full, full_like, new_full, fill, scalar_tensor: `flag` is the value's schema position.
Imported import_full(const ImportCall& call) { return filled(call, static_cast<size_t>(call.row.flag)); }

// `flag` is the number of leading start, end, step arguments. Floating ranges are computed in f64 as eager does.
Imported import_arange(const ImportCall& call) {
  size_t given = static_cast<size_t>(call.row.flag);
  Argument zero{call.constant(0)}, step_one{call.constant(1)};
  const Argument& start = given == 1 ? zero : call.argument(0);
  const Argument& step = given == 3 && !call.is_none(2) ? call.argument(2) : step_one;
  sym::Expr length = call.result().shape[0];
  DType dtype = call.result().dtype;
  const auto* first = std::get_if<sym::Expr>(&start.value);
  const auto* stride = std::get_if<sym::Expr>(&step.value);
  if (first && stride) return one(call.builder.iota(length, *first, *stride, dtype));
  if ((first && !first->is_constant()) || (stride && !stride->is_constant()))
    return decline("a floating range of symbolic bounds");
  Term position = call.term(call.builder.iota(length, call.constant(0), call.constant(1), DType::f64));
  double from = scalar_of(start, DType::f64).f, by = scalar_of(step, DType::f64).f;
  return rounded(call, from + by * position);
}

// start, end, steps: from both ends towards the middle, as eager's kernel counts.
Imported import_linspace(const ImportCall& call) {
  if (call.is_tensor(0) || call.is_tensor(1) || call.is_symbolic(0) || call.is_symbolic(1))
    return decline("bounds that are no numbers");
  sym::Expr steps = call.result().shape[0];
  DType dtype = call.result().dtype;
  if (!is_floating(dtype) || !steps.is_constant())
    return decline("of {} in a symbolic number of steps", to_text(dtype));
  double start = call.number(0), end = call.number(1);
  int64_t count = steps.constant();
  if (count == 1) return one(call.builder.full({steps}, Scalar::of(dtype, start)));
  DType computed = compute_dtype(dtype);
  double step = Scalar::of(computed, (end - start) / static_cast<double>(count - 1)).f;
  Term position = call.term(call.builder.iota(steps, call.constant(0), call.constant(1), computed));
  Term low = start + step * position;
  Term high = end - step * (static_cast<double>(count - 1) - position);
  return rounded(call, where(less(position, static_cast<double>(count / 2)), low, high));
}

// eye(n), eye(n, m)
Imported import_eye(const ImportCall& call) {
  const Shape& shape = call.result().shape;
  Term row = call.term(call.builder.iota(shape[0], call.constant(0), call.constant(1), DType::i64));
  Term column = call.term(call.builder.iota(shape[1], call.constant(0), call.constant(1), DType::i64));
  return rounded(call, equal(call.term(call.builder.unsqueeze(row, 1)), column));
}

// tril (`flag` 0), triu (`flag` 1): self, diagonal.
Imported import_triangle(const ImportCall& call) {
  Term x = call.tensor(0);
  size_t rank = x.type().rank();
  if (rank < 2) return decline("of rank {}", rank);
  auto positions = [&](size_t dim) {
    return call.term(call.builder.iota(x.type().shape[dim], call.constant(0), call.constant(1), DType::i64));
  };
  Term row = call.term(call.builder.unsqueeze(positions(rank - 2), 1));
  Term bound = row + call.term(call.builder.size_value(call.size(1)));
  Term column = positions(rank - 1);
  Term kept = call.row.flag ? greater_equal(column, bound) : less_equal(column, bound);
  return one(where(kept, x, 0.0));
}

}  // namespace kerf::graph
