#pragma once
// Lifetimes of the buffers of a Plan, and the Plan's invariants.
//
// A buffer lives from the step that defines it to the step that uses it last, both included: a step never finds
// its operands and its results in the same memory. What is returned lives to `steps.size()`, one past the last step.
//
// A result that takes over the memory of an operand is one buffer with it already (sched/reuse_operands.h).
#include "runtime/plan.h"

namespace kerf::runtime {

// first_step > last_step marks a buffer that no step and no output uses: it gets no memory.
inline bool is_used(const PlanBuffer& buffer) { return buffer.first_step <= buffer.last_step; }

// Sets first_step and last_step of all buffers from the steps and outputs.
void compute_lifetimes(Plan& plan);

// Throws InternalError unless
//   * every index (buffer, artifact, input, output) is in range, every expression is present;
//   * every size symbol has a source, and sources name inputs and dimensions that exist;
//   * storages are consistent: `input` names its input, `output` the position of a tensor output of the same buffer,
//     `adopted` is defined by exactly one extern result; no output refers to arena memory;
//   * lifetimes cover all uses.
void verify(const Plan& plan);

}  // namespace kerf::runtime
