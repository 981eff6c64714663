#pragma once
// Results in the memory of an operand that ends: less memory at once, and stores to lines that are in the cache already.
//
// A kernel that reads a temporary for the last time may store a new buffer of the same size over it where each element
// is read once, before it is stored, in the same iteration: one load, one store, in the same block, at the same index, with
// as many iterations as the buffer has elements. The store then hits each element once, as the kernel writes all of them. The
// two become one buffer of the program, an `inout` of that kernel.
//
// Temporaries that library calls touch take part where the call is one whose result shares memory with nothing, and become
// outputs where their strides leave no choice.
//
// Runs before schedules are chosen, after all that merges or repeats statements.
#include "loop/program.h"

namespace kerf::sched {

loop::Program reuse_operands(const loop::Program& program);

}  // namespace kerf::sched
