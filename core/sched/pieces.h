#pragma once
// Loops along memory whose accesses wrap (a rolled row) fall into loops over intervals, in which the wraps are offsets
// (axis/pieces.h). Masked rows stay whole: docs/decisions/0025-pieces-on-the-cpu.md.
//
//   for c < 100                              for r0 < 97
//     load x[100*r + (c + 3) % 100]            load x[100*r + r0 + 3]
//                                            for r1 < 3
//                                              load x[100*r + r1]
#include <vector>

#include "loop/kernel.h"

namespace kerf::sched {

// Only innermost loops without folds. Kernels whose rows are too few to share out become several: one for each interval.
std::vector<loop::Kernel> split_pieces(const loop::Kernel& kernel);

}  // namespace kerf::sched
