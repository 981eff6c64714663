#pragma once
// One step of a fold as a scalar operation.
#include <optional>

#include "ops/reduce_op.h"
#include "ops/scalar_op.h"

namespace kerf::ops {

// Absent for folds with an index.
std::optional<ScalarOp> step_of(ReduceOp op);

}  // namespace kerf::ops
