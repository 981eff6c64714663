#pragma once
// Views that get a buffer of their own, for targets whose vectors want neighbours in memory (Ascend). Lowering composes every
// view into its readers; here a value is copied once and read contiguously where that composition is dear:
//
//   * Repeated along a short last axis (1 < n < short_row), by more than one kernel: an element at a time would be read for
//     n of the tile's.
//
//         x[m] for m < M, j < 4       (two readers)    =>    y[4*m + j] = x[m];  y[4*m + j] in both, which are flat now
//
//   * A temporary with a stride along the rows that a fold runs over, where the other operands lie along them: softmax over the
//     keys of scores[h, q, k] + bias[q, k, h]. The copy is made once for all that read it (every layer of T5). Not of
//     graph inputs, and not where all lies across: that is a sum of columns. For bishengir the tile of such a softmax of T5 then takes
//     28 bytes an element instead of 290, as no element is padded to 32 bytes.
//
// A copy is a kernel of its own: its buffer is marked `realised`, which fusion respects. A kernel that is such a copy already (a
// clone) is marked instead of copied. Running the pass again changes nothing.
#include "loop/program.h"

namespace kerf::sched {

loop::Program realise_views(const loop::Program& program);

}  // namespace kerf::sched
