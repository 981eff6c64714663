#pragma once
// A nest over one part of an axis, its body written out for each part.
//
//   for i < 64:  y[i] = x[i] * w[i]      =>      for i < 32:  y[i] = x[i] * w[i];  y[i + 32] = x[i + 32] * w[i + 32]
//
// A fold over the axis folds the parts' elements with one another first.
#include <optional>

#include "sched/nest.h"

namespace kerf::sched {

struct Unrolling {
  size_t axis = 0;  // of the nest's all_axes()
  sym::Expr block;  // indices of the axis in a part
  sym::Expr times;  // how often all parts follow one another along the axis
  int64_t parts = 0;
};

// Not where a fold over the axis must know which element came first.
bool can_unroll(const Nest& nest, size_t axis);

// The kernel, its buffers as they were; masks that a part decides are gone.
loop::Kernel unroll(const Nest& nest, const Unrolling& unrolling);

}  // namespace kerf::sched
