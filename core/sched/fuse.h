#pragma once
// A group becomes one kernel on canonical axes: outer loops around a sequence of inner loops and row values.
//
//   for outer axes
//     row values that need no fold            (slot 0)
//     inner loop 0: full members, folds        then the results of its folds
//     row values that need loop 0's folds     (slot 1)
//     inner loop 1 ...
// Where columns are summed, their rows are cleared first, and the axes summed over are loops around all the rest, inside the
// outer ones.
// Every member runs in the first inner loop that its inputs allow (later where only later loops read it). A full value
// that a later loop reads again is, in this order: read back, if it is in memory anyway; computed again, if that is cheap;
// kept in a local row.
// Temporaries whose readers are all in the group never reach memory.
#include <vector>

#include "loop/program.h"
#include "sched/group.h"
#include "sched/traffic.h"

namespace kerf::sched {

struct FusedKernel {
  loop::Kernel kernel;  // unscheduled: all loops serial
  std::vector<target::BufferIndex> arguments;
};

// `members_only[b]`: all readers of buffer b are members of the group and the graph does not return it.
FusedKernel fuse(const loop::Program& program, const Group& group, const std::vector<bool>& members_only);

}  // namespace kerf::sched
