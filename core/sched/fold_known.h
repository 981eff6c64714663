#pragma once
// What the extents of a kernel's axes decide: comparisons of indices, what they mask and select.
#include <optional>

#include "loop/kernel.h"

namespace kerf::sched {

bool is_comparison(ops::ScalarOp op);

// An integer value that is an expression of axes.
std::optional<sym::Expr> index_of(const loop::Kernel& kernel, loop::ValueId id);

// Comparisons that hold or fail everywhere become constants, reads under them plain or no reads at all; then dead values go.
loop::Kernel fold_known(loop::Kernel kernel);

}  // namespace kerf::sched
