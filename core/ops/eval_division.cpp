#include <cmath>

#include "ops/eval.h"

namespace kerf::ops {

namespace {

struct Division {
  int64_t quotient = 0;   // towards zero
  int64_t remainder = 0;  // sign of the dividend
};

// Division by zero gives zeros (the caller reports it). The minimum divided by -1 wraps to the minimum where
// the machine would trap.
Division divide(int64_t a, int64_t b) {
  if (b == 0) return {};
  if (b == -1) return {static_cast<int64_t>(0 - static_cast<uint64_t>(a)), 0};
  return {a / b, a % b};
}

// The remainder towards zero must move by one divisor to have the divisor's sign.
template <class T>
bool signs_differ(T remainder, T divisor) {
  return remainder != 0 && (remainder < 0) != (divisor < 0);
}

// Each step is rounded to T: for a large quotient the steps decide the result.
template <class T>
T floor_divide(T a, T b) {
  if (b == 0) return a / b;
  T remainder = std::fmod(a, b);
  T quotient = (a - remainder) / b;
  if (signs_differ(remainder, b)) quotient -= 1;
  if (quotient == 0) return std::copysign(T(0), a / b);
  // `quotient` is a whole number but for the rounding of the division.
  T floored = std::floor(quotient);
  return quotient - floored > T(0.5) ? floored + 1 : floored;
}

// An infinite divisor of the other sign is the result: eager adds it.
template <class T>
T remainder(T a, T b) {
  T result = std::fmod(a, b);
  return signs_differ(result, b) ? result + b : result;
}

template <class T>
T truncate_divide(T a, T b) {
  return std::trunc(a / b);
}

// `in_float` or `in_double` by the result's type, so that every step rounds to it.
Scalar stepwise(DType result, Operands x, float (*in_float)(float, float),
                double (*in_double)(double, double)) {
  if (result == DType::f64) return Scalar::of(result, in_double(x[0].f, x[1].f));
  return Scalar::of(result, in_float(static_cast<float>(x[0].f), static_cast<float>(x[1].f)));
}

}  // namespace

Scalar eval_floor_div(DType result, Operands x) {
  if (is_floating(result)) return stepwise(result, x, floor_divide<float>, floor_divide<double>);
  auto [quotient, remainder] = divide(x[0].i, x[1].i);
  return Scalar::of_int(result, quotient - signs_differ(remainder, x[1].i));
}

Scalar eval_trunc_div(DType result, Operands x) {
  if (is_floating(result)) return stepwise(result, x, truncate_divide<float>, truncate_divide<double>);
  return Scalar::of_int(result, divide(x[0].i, x[1].i).quotient);
}

Scalar eval_rem(DType result, Operands x) {
  if (is_floating(result)) return stepwise(result, x, remainder<float>, remainder<double>);
  int64_t rest = divide(x[0].i, x[1].i).remainder;
  return Scalar::of_int(result, signs_differ(rest, x[1].i) ? rest + x[1].i : rest);
}

Scalar eval_fmod(DType result, Operands x) {
  if (is_floating(result)) return Scalar::of(result, std::fmod(x[0].f, x[1].f));
  return Scalar::of_int(result, divide(x[0].i, x[1].i).remainder);
}

}  // namespace kerf::ops
