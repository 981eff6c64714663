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

// `flag` is the number of leading start, end, step arguments. Floating ranges are computed in f64 as eager does, but
// every element from the start, where eager's vector loop begins anew from rounded elements; of integers, start and
// step are integers.
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
  auto size = [](const Argument& bound) { return std::get_if<sym::Expr>(&bound.value); };
  auto whole = [&](const Argument& bound) {
    return size(bound) ? *size(bound) : call.constant(scalar_of(bound, DType::i64).i);
  };
  if (!is_floating(dtype)) return one(call.builder.iota(length, whole(start), whole(step), dtype));
  auto exact = [&](const Argument& bound) {
    if (size(bound)) return call.term(call.builder.size_value(*size(bound))).in(DType::f64);
    return call.term(call.builder.constant(scalar_of(bound, DType::f64)));
  };
  Term position = call.term(call.builder.iota(length, call.constant(0), call.constant(1), DType::f64));
  Term from = exact(start), by = exact(step);
  return rounded(call, call.term(call.builder.apply(ops::ScalarOp::fma, {by, position, from})));
}

// start, end, steps: from both ends towards the middle, rounded where eager's kernel rounds: once by a fused
// multiply-add, but after every operation in the halves; integers are truncated from f64.
Imported import_linspace(const ImportCall& call) {
  if (call.is_tensor(0) || call.is_tensor(1) || call.is_symbolic(0) || call.is_symbolic(1))
    return decline("bounds that are no numbers");
  sym::Expr steps = call.result().shape[0];
  DType dtype = call.result().dtype;
  if (dtype == DType::b1 || !steps.is_constant())
    return decline("of {} in a symbolic number of steps", to_text(dtype));
  DType stepped = is_floating(dtype) ? dtype : DType::f64, computed = compute_dtype(stepped);
  auto nearest = [&](double value) { return Scalar::of(stepped, Scalar::of(computed, value).f).f; };
  auto bound = [&](size_t i) { return convert(scalar_of(call.argument(i), dtype), DType::f64).f; };
  double start = bound(0), end = bound(1);
  int64_t count = steps.constant();
  if (count == 1) return one(call.builder.full({steps}, scalar_of(call.argument(0), dtype)));
  double step = nearest(nearest(end - start) / nearest(static_cast<double>(count - 1)));
  auto counted = [&](int64_t from, int64_t by, DType type) {
    return call.term(call.builder.iota(steps, call.constant(from), call.constant(by), type));
  };
  auto away = [&](double from, double by, const Term& times) {
    Term factor = Term(by).like(times), base = Term(from).like(times);
    if (stepped == computed) return call.term(call.builder.apply(ops::ScalarOp::fma, {factor, times, base}));
    Term moved = (factor * times.in(stepped).computing()).in(stepped).computing();
    return (base + moved).in(stepped).computing();
  };
  Term low = away(start, step, counted(0, 1, computed)),
       high = away(end, -step, counted(count - 1, -1, computed));
  Term is_low = less(counted(0, 1, DType::i64), static_cast<double>(count / 2));
  return rounded(call, where(is_low, low, high));
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
