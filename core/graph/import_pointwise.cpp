// Pointwise calls that are one scalar operation once types are promoted.
//
// Eager computes f16 and bf16 in f32 and rounds once: operands are cast up, the result down. Products and
// quotients take a second operand that is a number or 0-d unrounded (0.1 stays 0.1 in f32 beside a bf16 tensor);
// everything else first rounds every operand to the common dtype.
#include "graph/import_call.h"

namespace kerf::graph {

namespace {

using ops::ScalarOp;

std::optional<DType> typed(ScalarOp op, DType operand) {
  std::vector<DType> operands(static_cast<size_t>(ops::info(op).arity), operand);
  return ops::result_dtype(op, operands);
}

Unsupported no_such(ScalarOp op, DType dtype) {
  return decline("{} of {}", ops::to_text(op), to_text(dtype));
}

DType common_dtype(const ImportCall& call, size_t operands) {
  std::vector<Promoted> promoted;
  for (size_t i = 0; i < operands; ++i) promoted.push_back(call.promoted(i));
  return result_type(promoted);
}

// A copy of the operand: what an operation that changes nothing gives.
Imported copied(const ImportCall& call) {
  return one(call.builder.copy(call.tensor(0), call.result().dtype));
}

}  // namespace

Imported import_unary(const ImportCall& call) {
  DType dtype = compute_dtype(call.result().dtype);
  if (!typed(call.row.scalar, dtype)) return no_such(call.row.scalar, dtype);
  return rounded(call, apply(call.row.scalar, call.tensor(0).in(dtype)));
}

// floor, ceil, round, trunc: integers stay as they are.
Imported import_rounding(const ImportCall& call) {
  return is_floating(call.result().dtype) ? import_unary(call) : copied(call);
}

// Of floats; `flag` is what an integer gives.
Imported import_predicate(const ImportCall& call) {
  Term x = call.tensor(0).computing();
  if (is_floating(x.dtype())) return one(apply(call.row.scalar, x));
  return one(call.builder.full(x.type().shape, Scalar::of_int(DType::b1, call.row.flag)));
}

Imported import_signbit(const ImportCall& call) {
  Term x = call.tensor(0).computing();
  if (x.dtype() == DType::b1) return one(call.builder.full(x.type().shape, Scalar::of_int(DType::b1, 0)));
  return one(is_floating(x.dtype()) ? apply(ScalarOp::signbit, x) : less(x, 0.0));
}

Imported import_binary(const ImportCall& call) {
  DType dtype = compute_dtype(call.result().dtype);
  if (!typed(call.row.scalar, dtype)) return no_such(call.row.scalar, dtype);
  Term a = call.operand(0, call.result().dtype).computing(), b = call.operand(1, dtype);
  return rounded(call, apply(call.row.scalar, a, b));
}

// As import_binary, with every operand first rounded to the result's dtype.
Imported import_rounded_binary(const ImportCall& call) {
  DType dtype = call.result().dtype;
  if (!typed(call.row.scalar, compute_dtype(dtype))) return no_such(call.row.scalar, dtype);
  Term a = call.operand(0, dtype).computing(), b = call.operand(1, dtype).computing();
  return rounded(call, apply(call.row.scalar, a, b));
}

// fmax and fmin (`scalar` says which). Of two zeros eager gives the first, of bf16 the second.
Imported import_number_extremum(const ImportCall& call) {
  DType dtype = call.result().dtype;
  if (!is_floating(dtype)) return import_rounded_binary(call);
  Term a = call.operand(0, dtype).computing(), b = call.operand(1, dtype).computing();
  bool is_max = call.row.scalar == ScalarOp::fmax;
  Term wins = dtype == DType::bf16 ? (is_max ? greater(a, b) : less(a, b))
                                   : (is_max ? greater_equal(a, b) : less_equal(a, b));
  return rounded(call, where(either(wins, isnan(b)), a, b));
}

// The neighbour in f32 is not the one in a half.
Imported import_nextafter(const ImportCall& call) {
  DType dtype = call.result().dtype;
  return dtype == compute_dtype(dtype) ? import_rounded_binary(call) : no_such(call.row.scalar, dtype);
}

Imported import_compare(const ImportCall& call) {
  DType dtype = common_dtype(call, 2);
  Term a = call.operand(0, dtype).computing(), b = call.operand(1, dtype).computing();
  return one(apply(call.row.scalar, a, b));
}

Imported import_logical(const ImportCall& call) {
  Term a = call.tensor(0).in(DType::b1);
  return one(ops::info(call.row.scalar).arity == 1 ? apply(call.row.scalar, a)
                                                   : apply(call.row.scalar, a, call.operand(1, DType::b1)));
}

// Torch refuses differences of bools, even with a number.
bool is_bool(const ImportCall& call, size_t i) {
  return call.is_tensor(i) ? call.tensor(i).dtype() == DType::b1
                           : std::holds_alternative<bool>(call.argument(i).value);
}

// self + alpha * other, alpha * other being fused as in eager's vector loops. `flag` -1: subtraction. Sums and
// products of bools are `or` and `and`.
Imported import_add(const ImportCall& call) {
  DType dtype = compute_dtype(call.result().dtype);
  bool subtract = call.row.flag < 0;
  if (subtract && (is_bool(call, 0) || is_bool(call, 1))) return no_such(ScalarOp::sub, DType::b1);
  Term a = call.operand(0, call.result().dtype).computing();
  Term b = call.operand(1, call.result().dtype).computing();
  if (call.is_symbolic(2)) return decline("a symbolic alpha");
  double alpha = call.is_none(2) ? 1 : call.number(2);
  if (dtype == DType::b1) {
    if (alpha == 0) b = both(b, call.term(call.builder.constant(Scalar::of_int(DType::b1, 0))));
    return one(either(a, b));
  }
  if (alpha == 1) return rounded(call, subtract ? a - b : a + b);
  Scalar factor = scalar_of(call.argument(2), dtype);
  Term scale = call.term(call.builder.constant(factor));
  if (!is_floating(dtype)) return one(subtract ? a - b * scale : a + b * scale);
  if (subtract) scale = -scale;
  return rounded(call, call.term(call.builder.apply(ScalarOp::fma, {b, scale, a})));
}

// other - alpha * self
Imported import_rsub(const ImportCall& call) {
  Call swapped = call.call;
  std::swap(swapped.arguments[0], swapped.arguments[1]);
  RowFields row = call.row;
  row.flag = -1;
  return import_add({call.builder, swapped, row});
}

Imported import_mul(const ImportCall& call) {
  if (call.result().dtype != DType::b1) return import_binary(call);
  Term a = call.operand(0, DType::b1), b = call.operand(1, DType::b1);
  return one(both(a, b));
}

// rounding_mode None, "trunc" or "floor".
Imported import_div_mode(const ImportCall& call) {
  RowFields row = call.row;
  row.scalar = call.is_none(2)             ? ScalarOp::div
               : call.string(2) == "trunc" ? ScalarOp::trunc_div
                                           : ScalarOp::floor_div;
  return import_binary({call.builder, call.call, row});
}

Imported import_where(const ImportCall& call) {
  DType dtype = call.result().dtype;
  Term condition = call.tensor(0).in(DType::b1), a = call.operand(1, dtype), b = call.operand(2, dtype);
  return one(where(condition, a, b));
}

// self, mask, value
Imported import_masked_fill(const ImportCall& call) {
  Term self = call.tensor(0), mask = call.tensor(1).in(DType::b1), value = call.operand(2, self.dtype());
  return one(where(mask, value, self));
}

Imported import_cast(const ImportCall& call) { return copied(call); }

// copy.default: self's type, src's elements.
Imported import_copy(const ImportCall& call) {
  Term source = call.tensor(1).in(call.result().dtype);
  return one(call.builder.copy(call.builder.expand(source, call.result().shape), call.result().dtype));
}

// copy_.default, the write-back into an input.
Imported import_assign(const ImportCall& call) {
  Term self = call.tensor(0), source = call.tensor(1);
  const Graph& graph = call.builder.graph();
  if (graph.nodes[graph.values[self].producer].op != Op::input) return decline("the target is not an input");
  return one(call.builder.assign(self, call.builder.expand(source.in(self.dtype()), self.type().shape)));
}

// Traced as integers, but eager has no such kernel.
bool is_power_of_bools(const ImportCall& call) { return is_bool(call, 0) && is_bool(call, 1); }

Imported import_pow(const ImportCall& call) {
  return is_power_of_bools(call) ? no_such(ScalarOp::pow, DType::b1) : import_rounded_binary(call);
}

// pow with the shortcuts of eager's kernels, whose limit cases differ from pow's: sqrt(-inf) is NaN.
Imported import_pow_scalar(const ImportCall& call) {
  DType dtype = compute_dtype(call.result().dtype);
  Term x = call.tensor(0).in(dtype);
  if (is_power_of_bools(call)) return no_such(ScalarOp::pow, DType::b1);
  if (call.is_symbolic(1))
    return rounded(call, apply(ScalarOp::pow, x, call.operand(1, call.result().dtype).computing()));
  double exponent = call.number(1);
  if (!is_floating(dtype) && exponent < 0)
    return decline("an integer to a negative power, which torch refuses");
  if (exponent == 0) return one(call.builder.full(x.type().shape, Scalar::of(call.result().dtype, 1)));
  if (exponent == 1) return copied(call);
  if (exponent == 2) return rounded(call, x * x);
  if (exponent == 3) return rounded(call, x * x * x);
  if (is_floating(dtype) && call.result().dtype != DType::f16) {  // f16 has no shortcuts
    if (exponent == 0.5) return rounded(call, sqrt(x));
    if (exponent == -0.5) return rounded(call, rsqrt(x));
    if (exponent == -1) return rounded(call, apply(ScalarOp::reciprocal, x));
    if (exponent == -2) return rounded(call, apply(ScalarOp::reciprocal, x * x));
  }
  return rounded(call, apply(ScalarOp::pow, x, call.operand(1, call.result().dtype).computing()));
}

// A number to the power of a tensor.
Imported import_scalar_pow(const ImportCall& call) {
  if (is_power_of_bools(call)) return no_such(ScalarOp::pow, DType::b1);
  if (!call.is_symbolic(0) && call.number(0) == 1)
    return one(call.builder.full(call.result().shape, Scalar::of(call.result().dtype, 1)));
  return import_binary(call);
}

}  // namespace kerf::graph
