#include <cmath>
#include <limits>

#include "ops/eval.h"

namespace kerf::ops {

namespace {

// Integers wrap: computed modulo 2^64 and cut to the type, which is the same as computing in the type.
uint64_t bits(const Scalar& x) { return static_cast<uint64_t>(x.i); }
Scalar wrapped(DType result, uint64_t value) { return Scalar::of_int(result, static_cast<int64_t>(value)); }

double ieee_minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

double ieee_maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

// 1 / base^|exponent| truncated: only 1 and -1 have an inverse that is not zero.
int64_t inverse_power(int64_t base, int64_t exponent) {
  if (base == 1) return 1;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  return 0;
}

}  // namespace

Scalar eval_add(DType result, Operands x) {
  if (is_floating(result)) return Scalar::of(result, x[0].f + x[1].f);
  return wrapped(result, bits(x[0]) + bits(x[1]));
}

Scalar eval_sub(DType result, Operands x) {
  if (is_floating(result)) return Scalar::of(result, x[0].f - x[1].f);
  return wrapped(result, bits(x[0]) - bits(x[1]));
}

Scalar eval_mul(DType result, Operands x) {
  if (is_floating(result)) return Scalar::of(result, x[0].f * x[1].f);
  return wrapped(result, bits(x[0]) * bits(x[1]));
}

Scalar eval_div(DType result, Operands x) { return Scalar::of(result, x[0].f / x[1].f); }

// In double the sum would be rounded twice for f32.
Scalar eval_fma(DType result, Operands x) {
  if (result == DType::f64) return Scalar::of(result, std::fma(x[0].f, x[1].f, x[2].f));
  return Scalar::of(
      result, std::fma(static_cast<float>(x[0].f), static_cast<float>(x[1].f), static_cast<float>(x[2].f)));
}

Scalar eval_neg(DType result, Operands x) {
  if (is_floating(result)) return Scalar::of(result, -x[0].f);
  return wrapped(result, 0 - bits(x[0]));
}

Scalar eval_abs(DType result, Operands x) {
  if (is_floating(result)) return Scalar::of(result, std::fabs(x[0].f));
  return wrapped(result, x[0].i < 0 ? 0 - bits(x[0]) : bits(x[0]));
}

Scalar eval_sign(DType result, Operands x) {
  if (is_floating(result)) return Scalar::of(result, (x[0].f > 0) - (x[0].f < 0));
  return Scalar::of_int(result, (x[0].i > 0) - (x[0].i < 0));
}

Scalar eval_minimum(DType result, Operands x) {
  if (is_floating(result)) return Scalar::of(result, ieee_minimum(x[0].f, x[1].f));
  return x[1].i < x[0].i ? x[1] : x[0];
}

Scalar eval_maximum(DType result, Operands x) {
  if (is_floating(result)) return Scalar::of(result, ieee_maximum(x[0].f, x[1].f));
  return x[1].i > x[0].i ? x[1] : x[0];
}

Scalar eval_fmin(DType result, Operands x) {
  if (is_floating(result) && std::isnan(x[0].f)) return x[1];
  if (is_floating(result) && std::isnan(x[1].f)) return x[0];
  return eval_minimum(result, x);
}

Scalar eval_fmax(DType result, Operands x) {
  if (is_floating(result) && std::isnan(x[0].f)) return x[1];
  if (is_floating(result) && std::isnan(x[1].f)) return x[0];
  return eval_maximum(result, x);
}

Scalar eval_pow(DType result, Operands x) {
  if (is_floating(result)) return Scalar::of(result, std::pow(x[0].f, x[1].f));
  if (x[1].i < 0) return Scalar::of_int(result, inverse_power(x[0].i, x[1].i));
  return wrapped(result, power(bits(x[0]), bits(x[1])));
}

}  // namespace kerf::ops
