#include <math.h>  // lgamma_r is not in <cmath>

#include <cmath>
#include <limits>
#include <numbers>

#include "ops/eval.h"

namespace kerf::ops {

namespace {

// Starting value with about three digits (a logarithmic approximation), then Newton steps on erf, whose
// derivative is 2/sqrt(pi) exp(-x^2). Near +-1 the difference is taken on erfc, which does not cancel there.
double inverse_erf(double y) {
  double magnitude = std::fabs(y);
  if (!(magnitude <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude == 1) return std::copysign(std::numeric_limits<double>::infinity(), y);
  if (magnitude < 1e-8) return y * (std::sqrt(std::numbers::pi) / 2);  // the next term is y^3: below rounding

  constexpr double a = 0.147;
  double log_rest = std::log1p(-magnitude * magnitude);
  double mean = 2 / (std::numbers::pi * a) + log_rest / 2;
  double x = std::sqrt(std::sqrt(mean * mean - log_rest / a) - mean);
  for (int step = 0; step < 4; ++step) {
    double error = magnitude > 0.5 ? (1 - magnitude) - std::erfc(x) : std::erf(x) - magnitude;
    double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-x * x);
    x -= error / (slope + x * error);  // Halley's step: the second derivative of erf is -2x times the first
  }
  return std::copysign(x, y);
}

}  // namespace

Scalar eval_isnan(DType result, Operands x) { return Scalar::of_int(result, std::isnan(x[0].f)); }
Scalar eval_isinf(DType result, Operands x) { return Scalar::of_int(result, std::isinf(x[0].f)); }
Scalar eval_isfinite(DType result, Operands x) { return Scalar::of_int(result, std::isfinite(x[0].f)); }
Scalar eval_signbit(DType result, Operands x) { return Scalar::of_int(result, std::signbit(x[0].f)); }

Scalar eval_rsqrt(DType result, Operands x) { return Scalar::of(result, 1 / std::sqrt(x[0].f)); }
Scalar eval_reciprocal(DType result, Operands x) { return Scalar::of(result, 1 / x[0].f); }

// Equal infinities are their own result; their difference would be NaN.
Scalar eval_logaddexp(DType result, Operands x) {
  double a = x[0].f, b = x[1].f;
  if (std::isinf(a) && a == b) return x[0];
  return Scalar::of(result, (a < b ? b : a) + std::log1p(std::exp(-std::fabs(a - b))));
}

Scalar eval_nextafter(DType result, Operands x) {
  if (result == DType::f64) return Scalar::of(result, std::nextafter(x[0].f, x[1].f));
  return Scalar::of(result, std::nextafter(static_cast<float>(x[0].f), static_cast<float>(x[1].f)));
}

// Where exp(-x) is beyond the type the result is 0, although a subnormal would be nearer: eager's limit.
Scalar eval_sigmoid(DType result, Operands x) {
  Scalar growth = Scalar::of(result, std::exp(-x[0].f));
  return Scalar::of(result, std::isinf(growth.f) ? 0.0 : 1 / (1 + std::exp(-x[0].f)));
}

Scalar eval_erfinv(DType result, Operands x) { return Scalar::of(result, inverse_erf(x[0].f)); }

// std::lgamma writes the global `signgam`.
Scalar eval_lgamma(DType result, Operands x) {
  int sign = 0;
  return Scalar::of(result, ::lgamma_r(x[0].f, &sign));
}

}  // namespace kerf::ops
