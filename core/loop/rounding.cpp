#include "loop/rounding.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kerf::loop {

namespace {

// Half the distance of neighbours at 1.
double unit(DType dtype) {
  switch (dtype) {
    case DType::bf16: return 0x1p-8;
    case DType::f16: return 0x1p-11;
    case DType::f64: return 0x1p-53;
    default: return 0x1p-24;
  }
}

bool is_one_of(const Scalar& result, std::span<const Scalar> operands) {
  return std::ranges::any_of(operands, [&](const Scalar& operand) {
    return is_floating(operand.dtype) && std::abs(operand.f) == std::abs(result.f);
  });
}

// `operand` moved by `distance`, in the type in which that is not rounded away.
Scalar moved(const Scalar& operand, double distance) {
  if (is_floating(operand.dtype)) return Scalar::of(DType::f64, operand.f + distance);
  if (distance == 0) return operand;
  if (operand.dtype == DType::b1) return Scalar::of_int(DType::b1, 1 - operand.i);
  return Scalar::of(operand.dtype, static_cast<double>(operand.i) + distance);
}

double change(ops::ScalarOp op, const Scalar& result, std::span<Scalar> operands) {
  DType wide = is_floating(result.dtype) ? DType::f64 : result.dtype;
  double off = std::abs(ops::evaluate(op, wide, operands).as_double() - result.as_double());
  return std::isnan(off) ? kUnknown : off;
}

}  // namespace

double bound_of(ops::ScalarOp op, const Scalar& result, std::span<const Scalar> operands,
                std::span<const double> bounds) {
  const ops::OpInfo& row = ops::info(op);
  bool is_float = is_floating(result.dtype);
  bool is_exact = std::ranges::all_of(bounds, [](double bound) { return bound == 0; });
  if (is_float && !std::isfinite(result.f)) return 0;
  // What is cast is the same on both sides, and rounded alike, unless it is off already.
  if (is_exact && (!is_float || row.types == ops::Typing::conversion)) return 0;
  double rounded = 0;
  if (is_float && !is_one_of(result, operands))
    rounded = (row.ulp + 0.5) * 2 * unit(result.dtype) * std::abs(result.f);
  if (is_exact) return rounded;
  double total = rounded;
  std::vector<Scalar> wide;
  for (const Scalar& operand : operands) wide.push_back(moved(operand, 0));
  for (size_t i = 0; i < operands.size(); ++i) {
    if (bounds[i] == 0) continue;
    if (op == ops::ScalarOp::bitcast || !std::isfinite(bounds[i])) return kUnknown;
    double most = 0;
    for (double distance : {bounds[i], -bounds[i]}) {
      wide[i] = moved(operands[i], distance);
      most = std::max(most, change(op, result, wide));
    }
    wide[i] = moved(operands[i], 0);
    total += most;
  }
  return total;
}

void FoldBound::step(const Scalar& before, const Scalar& value, const Scalar& after, double bound) {
  if (op_ == ops::ReduceOp::sum) {
    passed_on_ += bound;
    if (!is_first_) squares_ += after.f * after.f;
  } else if (op_ == ops::ReduceOp::prod) {
    double rounded = is_first_ ? 0 : 2 * unit(value.dtype) * std::abs(after.as_double());
    passed_on_ = passed_on_ * std::abs(value.as_double()) + bound * std::abs(before.as_double()) + rounded;
  } else {
    passed_on_ = std::max(passed_on_, bound);
  }
  is_first_ = false;
}

double FoldBound::bound(DType dtype) const {
  if (!is_floating(dtype)) return passed_on_;
  double roundings = kDeviations * unit(dtype) * std::sqrt(squares_);
  return std::isnan(roundings) ? 0 : passed_on_ + roundings;
}

}  // namespace kerf::loop
