#pragma once
// The order of steps, for the memory that is alive at once.
//
// A backward pass meets gradients of weights long before the activations of earlier layers are used up, and both are
// alive to its end or to their last use: in Swin, gradients of the last stage lie beside everything that the first two
// stages saved. Such a gradient can wait: its operands are small beside it, and nothing in the graph reads it. So, while
// the peak falls: of the results that nothing reads and that are alive at the peak, the one whose delay frees most there
// is computed as soon after the peak as it fits under it.
//
// Where the peak falls by less than a thirtieth the order stays: what a step reads is then warmer in cache.
//
// Of inputs those count that end with their last use: what a forward pass saved, not weights.
#include "loop/program.h"

namespace kerf::sched {

loop::Program order_steps(const loop::Program& program);

}  // namespace kerf::sched
