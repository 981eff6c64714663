#pragma once
// Gathers of few elements compute what they look up, from what it is made of.
//
//   y[r, c] = x[r, c] - m[r]                 1 of 50 000 log-probabilities in a row is all that a loss reads:
//   z[r]    = y[r, t[r]]            ->       z[r] = x[r, t[r]] - m[r]
//
// so that the value itself is never written. Only where nobody else needs it in memory: all who read it gather, far
// fewer elements than it has. Producers are followed through pointwise nests up to what is in memory, or small enough to be.
// It stands before grouping: what is left of the gather is a nest over its own axes, and joins the producers of the small
// operands. What nobody reads any more is taken out.
#include "loop/program.h"

namespace kerf::sched {

loop::Program gather_producers(const loop::Program& program);

}  // namespace kerf::sched
