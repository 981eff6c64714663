#include "ops/fold_step.h"

#include "base/check.h"

namespace kerf::ops {

std::optional<ScalarOp> step_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ScalarOp::add;
    case ReduceOp::prod: return ScalarOp::mul;
    case ReduceOp::min: return ScalarOp::minimum;
    case ReduceOp::max: return ScalarOp::maximum;
    case ReduceOp::any: return ScalarOp::or_;
    case ReduceOp::all: return ScalarOp::and_;
    case ReduceOp::argmin:
    case ReduceOp::argmax:
    case ReduceOp::argmax_last_nan:
    case ReduceOp::first_min:
    case ReduceOp::first_max: return std::nullopt;
  }
  UNREACHABLE("reduction {}", static_cast<int>(op));
}

}  // namespace kerf::ops
