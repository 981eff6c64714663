#pragma once
// Facts about a kernel's loop structure and accesses that scheduling decisions rest on.
#include <vector>

#include "loop/kernel.h"
#include "sym/facts.h"

namespace kerf::sched {

// The chain of loops that contain the whole rest of the kernel, outermost first.
std::vector<loop::AxisId> outer_chain(const loop::Kernel& kernel);

// One access to a buffer that is not local, with the axes of all loops and reduces around it.
struct PlacedAccess {
  loop::BufferId buffer;
  sym::Expr index;
  std::vector<loop::AxisId> axes;
  int64_t bytes = 0;  // moved by all iterations, with sizes hinted
  bool is_store = false;
};
std::vector<PlacedAccess> placed_accesses(const loop::Kernel& kernel);

// Vector instructions of computing the value; 0 for what is no operation.
int cost_of(const loop::Value& value);

// The loops and reduces inside the outer chain that have no loop inside them: their axes, outermost first; of loops, with those
// around them.
struct InnerLoop {
  std::vector<loop::AxisId> axes;
  bool is_reduce = false;
  int cost = 0;  // vector instructions of the most expensive value computed in it
};
std::vector<InnerLoop> innermost_loops(const loop::Kernel& kernel);

// Different iterations of `axis` write different elements, whatever the other axes and the values in the index are; and
// what an iteration reads of a buffer that the kernel writes, no other iteration writes.
bool is_independent(const loop::Kernel& kernel, loop::AxisId axis);

}  // namespace kerf::sched
