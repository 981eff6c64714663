#pragma once
// The evaluators the rows of scalar_ops.def refer to: what each operation means, one element at a time.
//
// Contract
//   * The operands have dtypes the row allows; the result is rounded or wrapped to `result`.
//   * The meaning is eager PyTorch's on the CPU. Where eager disagrees with itself (its vector loop and its
//   scalar
//     tail), the mathematically right answer stands, and minimum and maximum order -0.0 below 0.0.
//   * f32 is computed in double and rounded once, unless eager defines the operation in rounded steps whose
//   limit
//     cases show (floor_div, rem, trunc_div, sigmoid).
//   * Nothing traps and nothing is undefined: where `fails` holds the result is 0.
// These are for the table and the interpreters; callers use `evaluate` of scalar_op.h.
#include <span>

#include "base/dtype.h"

namespace kerf::ops {

using Operands = std::span<const Scalar>;

// A function of doubles, rounded once. Right for f32 with any correctly computed function, and for f64
// itself.
template <double (*function)(double)>
Scalar eval_unary(DType result, Operands x) {
  return Scalar::of(result, function(x[0].f));
}

template <double (*function)(double, double)>
Scalar eval_binary(DType result, Operands x) {
  return Scalar::of(result, function(x[0].f, x[1].f));
}

// arithmetic
Scalar eval_add(DType result, Operands x);
Scalar eval_sub(DType result, Operands x);
Scalar eval_mul(DType result, Operands x);
Scalar eval_div(DType result, Operands x);
Scalar eval_fma(DType result, Operands x);
Scalar eval_neg(DType result, Operands x);
Scalar eval_abs(DType result, Operands x);
Scalar eval_sign(DType result, Operands x);
Scalar eval_minimum(DType result, Operands x);
Scalar eval_maximum(DType result, Operands x);
Scalar eval_fmin(DType result, Operands x);
Scalar eval_fmax(DType result, Operands x);
Scalar eval_pow(DType result, Operands x);

// division
Scalar eval_floor_div(DType result, Operands x);
Scalar eval_trunc_div(DType result, Operands x);
Scalar eval_rem(DType result, Operands x);
Scalar eval_fmod(DType result, Operands x);

// bits and logic
Scalar eval_and(DType result, Operands x);
Scalar eval_or(DType result, Operands x);
Scalar eval_xor(DType result, Operands x);
Scalar eval_not(DType result, Operands x);
Scalar eval_shift_left(DType result, Operands x);
Scalar eval_shift_right(DType result, Operands x);

// comparisons, selection, conversion
Scalar eval_eq(DType result, Operands x);
Scalar eval_ne(DType result, Operands x);
Scalar eval_lt(DType result, Operands x);
Scalar eval_le(DType result, Operands x);
Scalar eval_gt(DType result, Operands x);
Scalar eval_ge(DType result, Operands x);
Scalar eval_where(DType result, Operands x);
Scalar eval_cast(DType result, Operands x);
Scalar eval_bitcast(DType result, Operands x);

// floating point
Scalar eval_isnan(DType result, Operands x);
Scalar eval_isinf(DType result, Operands x);
Scalar eval_isfinite(DType result, Operands x);
Scalar eval_signbit(DType result, Operands x);
Scalar eval_rsqrt(DType result, Operands x);
Scalar eval_reciprocal(DType result, Operands x);
Scalar eval_logaddexp(DType result, Operands x);
Scalar eval_nextafter(DType result, Operands x);
Scalar eval_sigmoid(DType result, Operands x);
Scalar eval_erfinv(DType result, Operands x);
Scalar eval_lgamma(DType result, Operands x);

// indices and random numbers
Scalar eval_check_index(DType result, Operands x);
Scalar eval_wrap_index(DType result, Operands x);
Scalar eval_random_uniform(DType result, Operands x);

}  // namespace kerf::ops
