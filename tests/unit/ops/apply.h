#pragma once
// Short forms for tables of expected values: apply an operation to plain numbers of one dtype, and compare so
// that -0.0 differs from 0.0 while every NaN is the same.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "ops/scalar_op.h"

namespace kerf::ops {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline std::vector<Scalar> scalars(DType dtype, const std::vector<double>& values) {
  std::vector<Scalar> result;
  for (double value : values) result.push_back(Scalar::of(dtype, value));
  return result;
}

inline Scalar apply(ScalarOp op, const std::vector<Scalar>& operands) {
  std::vector<DType> dtypes;
  for (const Scalar& operand : operands) dtypes.push_back(operand.dtype);
  std::optional<DType> result = result_dtype(op, dtypes);
  REQUIRE_MESSAGE(result.has_value(), to_text(op), " of ", to_text(dtypes[0]));
  return evaluate(op, *result, operands);
}

inline double apply(ScalarOp op, DType dtype, const std::vector<double>& operands) {
  return apply(op, scalars(dtype, operands)).as_double();
}

// 64-bit integers do not fit a double.
inline int64_t apply_integers(ScalarOp op, DType dtype, const std::vector<int64_t>& operands) {
  std::vector<Scalar> values;
  for (int64_t operand : operands) values.push_back(Scalar::of_int(dtype, operand));
  return apply(op, values).i;
}

inline bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

}  // namespace kerf::ops
