// Reductions. Sums and means of f16 and bf16 are taken in f32 and rounded once.
#include <algorithm>
#include <limits>
#include <numeric>

#include "graph/import_call.h"

namespace kerf::graph {

namespace {

using Dims = std::vector<int64_t>;
using ops::ReduceOp;

Dims all_dims(size_t rank) {
  Dims dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

// Reducing a bool: the largest is `any`, the smallest `all`.
ReduceOp boolean_form(ReduceOp op) {
  if (op == ReduceOp::max || op == ReduceOp::first_max) return ReduceOp::any;
  if (op == ReduceOp::min || op == ReduceOp::first_min) return ReduceOp::all;
  return op;
}

// A 0-d operand has no dimension to reduce, and any fold of one element is the element.
Term reduced(ReduceOp op, Term x, const Dims& dims, bool keepdim) {
  if (dims.empty()) return x;
  return reduce(x.dtype() == DType::b1 ? boolean_form(op) : op, x, dims, keepdim);
}

// The position of the extremum along one dimension; 0 for a 0-d operand.
Term position(const ImportCall& call, ReduceOp op, Term x, const Dims& dims, bool keepdim) {
  if (dims.empty()) return call.term(call.builder.constant(Scalar::of_int(DType::i64, 0)));
  if (x.dtype() == DType::b1) x = x.in(DType::u8);
  return reduce(op, x.computing(), dims, keepdim);
}

// torch refuses an extremum of nothing when the operator runs, not when it is traced: only the library can say so.
bool may_be_empty(const ImportCall& call, const Term& x, const Dims& dims) {
  sym::Facts facts = call.facts();
  return std::ranges::any_of(dims, [&](int64_t dim) {
    return sym::range_of(x.type().shape[static_cast<size_t>(dim)], facts).lo.value_or(0) < 1;
  });
}

// What a fold of bools comes to.
ReduceOp in_bool(ReduceOp op) {
  if (op == ReduceOp::sum) return ReduceOp::any;
  return op == ReduceOp::prod ? ReduceOp::all : op;
}

// Sum of squares around the mean in two passes, over max(count - correction, 0).
struct Moments {
  Term mean;
  Term variance;
  Term squares;  // sum of squared deviations
};

// max(elements - correction, 0): a number where the sizes are known, which needs no kernel that others would wait for.
Term reduced_by(const Term& elements, double correction) {
  if (correction == 0) return elements;
  const Graph& graph = elements.builder().graph();
  const Node& node = graph.nodes[graph.values[elements.value()].producer];
  if (node.op != Op::constant) return maximum(elements - correction, 0.0);
  return std::max(node.get<Scalar>(Attr::value).f - correction, 0.0);
}

// Squares are f64 as eager's: those of f32 may be beyond f32.
Moments moments(const ImportCall& call, Term x, const Dims& dims, size_t correction, bool keepdim) {
  x = x.computing();
  Term mean = sum(x, dims, true) / count(x, dims, x.dtype());
  Term deviation = (x - mean).in(DType::f64);
  Term elements = count(x, dims, DType::f64);
  Term squares = sum(deviation * deviation, dims, keepdim);
  double c = call.is_none(correction) ? 1 : call.number(correction);
  Shape shape = squares.type().shape;
  return {call.term(call.builder.reshape(mean, shape)), squares / reduced_by(elements, c), squares};
}

}  // namespace

// sum, prod, amax, amin, any, all over dims: `flag` 0: every dimension; 1: arguments self, dim(s), keepdim.
// The traced dtype tells in what to reduce.
Imported import_reduce(const ImportCall& call) {
  Term x = call.tensor(0);
  size_t rank = x.type().rank();
  Dims dims = call.row.flag ? call.dims(1, rank) : all_dims(rank);
  bool keepdim = call.row.flag && call.boolean(2, false);
  if (call.row.flag == 0 && (call.row.reduce == ReduceOp::max || call.row.reduce == ReduceOp::min) &&
      may_be_empty(call, x, dims))
    return decline("of possibly no elements, which torch refuses");
  ReduceOp op = call.row.reduce;
  if (call.result().dtype == DType::b1) op = in_bool(op);
  DType dtype = ops::info(op).boolean ? DType::b1 : call.result().dtype;
  Term y = reduced(op, x.in(dtype).computing(), dims, keepdim);
  // any and all of u8 are u8.
  return rounded(call, y);
}

// self[, dim, keepdim], dtype
Imported import_mean(const ImportCall& call) {
  Term x = call.tensor(0).in(call.result().dtype).computing();
  size_t rank = x.type().rank();
  Dims dims = call.row.flag ? call.dims(1, rank) : all_dims(rank);
  bool keepdim = call.row.flag && call.boolean(2, false);
  Term elements = count(x, dims, x.dtype());
  return rounded(call, reduced(ReduceOp::sum, x, dims, keepdim) / elements);
}

// max.dim, min.dim: self, dim, keepdim: values, indices.
Imported import_extremum_dim(const ImportCall& call) {
  Term x = call.tensor(0);
  Dims dims = x.type().rank() ? Dims{call.dim(1, x.type().rank())} : Dims{};
  if (may_be_empty(call, x, dims)) return decline("of possibly no elements, which torch refuses");
  bool keepdim = call.boolean(2, false), largest = ops::seeks_largest(call.row.reduce);
  Term values = reduced(call.row.reduce, x.computing(), dims, keepdim).in(x.dtype());
  Term indices = position(call, largest ? ReduceOp::argmax : ReduceOp::argmin, x, dims, keepdim);
  return std::vector<ValueId>{values, indices};
}

// argmax, argmin: self, dim, keepdim. Without dim: over the flattened elements.
Imported import_argextremum(const ImportCall& call) {
  Term x = call.tensor(0);
  if (x.dtype() == DType::b1) return decline("of bool, which torch refuses");
  bool keepdim = call.boolean(2, false);
  if (!call.is_none(1)) {
    Dims dims = x.type().rank() ? Dims{call.dim(1, x.type().rank())} : Dims{};
    return one(position(call, call.row.reduce, x, dims, keepdim));
  }
  Term flat = call.term(call.builder.reshape(x, {sym::product(call.context(), x.type().shape)}));
  Term found = position(call, call.row.reduce, flat, {0}, false);
  return one(call.builder.reshape(found, call.result().shape));
}

namespace {

// The mean as eager's running update leaves it: after an infinite element the next one makes it NaN, so that only a
// last element can make it infinite, if it is the only one.
Term running_mean(const ImportCall& call, const Term& x, const Dims& dims, const Moments& m) {
  Term last = x.computing();
  for (int64_t dim : dims) {
    sym::Expr extent = x.type().shape[static_cast<size_t>(dim)];
    if (!sym::provably_less(call.constant(0), extent, call.facts())) return m.mean;
    last = call.term(call.builder.slice(last, dim, extent - 1, call.constant(1), 1));
  }
  last = call.term(call.builder.reshape(last, m.mean.type().shape));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  bool keepdim = m.mean.type().rank() == x.type().rank();
  Term infinities = sum(equal(abs(x.computing()), kInfinity).in(m.mean.dtype()), dims, keepdim);
  Term several = greater(infinities, 1.0);
  Term earlier = less(abs(last), kInfinity);
  Term is_lost = both(isnan(m.squares), either(several, earlier));
  return where(is_lost, std::numeric_limits<double>::quiet_NaN(), m.mean);
}

}  // namespace

// var (`flag` 0), std (1): self, dim, correction, keepdim. var_mean (2) and std_mean (3) give two results.
Imported import_variance(const ImportCall& call) {
  Term x = call.tensor(0);
  if (call.is_symbolic(2)) return decline("a symbolic correction");
  if (x.type().rank() == 0) return decline("of a 0-d tensor");
  Dims dims = call.dims(1, x.type().rank());
  Moments m = moments(call, x, dims, 2, call.boolean(3, false));
  Term spread = call.row.flag & 1 ? sqrt(m.variance) : m.variance;
  if (call.row.flag < 2) return rounded(call, spread);
  Term mean = running_mean(call, x, dims, m);
  return std::vector<ValueId>{spread.in(call.result(0).dtype), mean.in(call.result(1).dtype)};
}

// self, dim, keepdim. An infinite maximum is not subtracted: inf - inf would be NaN.
Imported import_logsumexp(const ImportCall& call) {
  Term x = call.tensor(0).in(call.result().dtype).computing();
  Dims dims = call.dims(1, x.type().rank());
  if (dims.empty()) return rounded(call, x);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Term largest = reduce(ReduceOp::max, x, dims, true);
  Term shift = where(equal(abs(largest), kInfinity), 0.0, largest);
  Term total = log(sum(exp(x - shift), dims, true)) + shift;
  return rounded(call, call.term(call.builder.reshape(total, call.result().shape)));
}

// self, ord, dim, keepdim, dtype. An order None is 2.
Imported import_vector_norm(const ImportCall& call) {
  Term x = call.tensor(0).in(call.result().dtype).computing();
  Dims dims = call.dims(2, x.type().rank());
  bool keepdim = call.boolean(3, false);
  double order = call.is_none(1) ? 2 : call.number(1);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (order == kInfinity) return rounded(call, reduced(ReduceOp::max, abs(x), dims, keepdim));
  if (order == -kInfinity) return rounded(call, reduced(ReduceOp::min, abs(x), dims, keepdim));
  if (order == 0)
    return rounded(call, reduced(ReduceOp::sum, not_equal(x, 0.0).in(x.dtype()), dims, keepdim));
  if (order == 1) return rounded(call, reduced(ReduceOp::sum, abs(x), dims, keepdim));
  if (order == 2) return rounded(call, sqrt(reduced(ReduceOp::sum, x * x, dims, keepdim)));
  Term powers = reduced(ReduceOp::sum, apply(ops::ScalarOp::pow, abs(x), order), dims, keepdim);
  return rounded(call, apply(ops::ScalarOp::pow, powers, 1.0 / order));
}

// cumsum, cumprod: self, dim. The traced dtype tells in what to fold.
Imported import_scan(const ImportCall& call) {
  if (call.result().dtype == DType::b1) return decline("of bool");
  Term x = call.tensor(0).in(call.result().dtype).computing();
  int64_t dim = call.dim(1, x.type().rank());
  return rounded(call, call.term(call.builder.node(Op::scan, {x},
                                                   {{Attr::op, call.row.reduce}, {Attr::dim, dim}}, {})[0]));
}

}  // namespace kerf::graph
