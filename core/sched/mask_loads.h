#pragma once
// Loads that a fused kernel needs only under a mask are made under it.
//
//   for x0 < 512, x1 < 3, x2 < 128                 a value that was one of three slices, merged with what makes it
//     %0 = load q[128*x0 + x2]                     ->  under x1 == 0: read once, not three times; and where a target
//     %1 = where x1 == 0, exp(%0), 0.0                 has no masks, a box of its own
//
// Only where the mask runs over axes along which the load stands still: along others nothing is read twice, and an
// unmasked vector is cheaper.
#include "loop/kernel.h"

namespace kerf::sched {

// Same results. The kernel is to be renumbered.
loop::Kernel mask_loads(loop::Kernel kernel);

}  // namespace kerf::sched
