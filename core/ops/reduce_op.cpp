#include "ops/reduce_op.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "ops/eval.h"

namespace kerf::ops {

namespace {

constexpr ReduceInfo kTable[] = {
#define REDUCE(name, ...) ReduceInfo{__VA_ARGS__},
#include "ops/reduce_ops.def"
#undef REDUCE
};

Scalar lowest(DType dtype) {
  switch (dtype) {
    case DType::b1:
    case DType::u8: return Scalar::of_int(dtype, 0);
    case DType::i8: return Scalar::of_int(dtype, std::numeric_limits<int8_t>::min());
    case DType::i16: return Scalar::of_int(dtype, std::numeric_limits<int16_t>::min());
    case DType::i32: return Scalar::of_int(dtype, std::numeric_limits<int32_t>::min());
    case DType::i64: return Scalar::of_int(dtype, std::numeric_limits<int64_t>::min());
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64: return Scalar::of(dtype, -std::numeric_limits<double>::infinity());
  }
  UNREACHABLE("dtype {}", static_cast<int>(dtype));
}

Scalar highest(DType dtype) {
  if (dtype == DType::b1) return Scalar::of_int(dtype, 1);
  if (is_floating(dtype)) return Scalar::of(dtype, std::numeric_limits<double>::infinity());
  // All integer types: the complement of the lowest value, cut to the type (u8: 255).
  return Scalar::of_int(dtype, ~lowest(dtype).i);
}

bool is_nan(const Scalar& x) { return is_floating(x.dtype) && std::isnan(x.f); }

// Whether a is a better extremum than b; no NaNs.
bool better(ReduceOp op, const Scalar& a, const Scalar& b) {
  if (seeks_largest(op)) return is_floating(a.dtype) ? a.f > b.f : a.i > b.i;
  return is_floating(a.dtype) ? a.f < b.f : a.i < b.i;
}

}  // namespace

const ReduceInfo& info(ReduceOp op) { return kTable[static_cast<int>(op)]; }

std::optional<ReduceOp> reduce_op_from_text(std::string_view text) {
  for (size_t i = 0; i < std::size(kTable); ++i)
    if (kTable[i].text == text) return static_cast<ReduceOp>(i);
  return std::nullopt;
}

Scalar identity(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::any: return Scalar::of_int(dtype, 0);
    case ReduceOp::prod:
    case ReduceOp::all: return Scalar::of_int(dtype, 1);
    case ReduceOp::min:
    case ReduceOp::argmin:
    case ReduceOp::first_min: return highest(dtype);
    case ReduceOp::max:
    case ReduceOp::argmax:
    case ReduceOp::argmax_last_nan:
    case ReduceOp::first_max: return lowest(dtype);
  }
  UNREACHABLE("reduction {}", static_cast<int>(op));
}

Scalar combine(ReduceOp op, const Scalar& accumulator, const Scalar& value) {
  const Scalar operands[] = {accumulator, value};
  DType dtype = accumulator.dtype;
  CHECK(value.dtype == dtype, "{} of {} into {}", to_text(op), to_text(value.dtype), to_text(dtype));
  switch (op) {
    case ReduceOp::sum: return eval_add(dtype, operands);
    case ReduceOp::prod: return eval_mul(dtype, operands);
    case ReduceOp::min: return eval_minimum(dtype, operands);
    case ReduceOp::max: return eval_maximum(dtype, operands);
    case ReduceOp::any: return eval_or(dtype, operands);
    case ReduceOp::all: return eval_and(dtype, operands);
    case ReduceOp::argmin:
    case ReduceOp::argmax:
    case ReduceOp::argmax_last_nan:
    case ReduceOp::first_min:
    case ReduceOp::first_max: break;
  }
  UNREACHABLE("{} is folded by `replaces`", to_text(op));
}

bool seeks_largest(ReduceOp op) {
  return op == ReduceOp::argmax || op == ReduceOp::argmax_last_nan || op == ReduceOp::first_max;
}

bool replaces(ReduceOp op, const Scalar& value, int64_t index, const Scalar& best, int64_t best_index) {
  CHECK(info(op).has_index(), "{} has no index", to_text(op));
  // Equal values, or both NaN: the earlier index, whatever the order of folding.
  bool later_nan = op == ReduceOp::argmax_last_nan;
  if (is_nan(value)) return !is_nan(best) || (later_nan ? index > best_index : index < best_index);
  if (is_nan(best)) return false;
  return better(op, value, best) || (!better(op, best, value) && index < best_index);
}

}  // namespace kerf::ops
