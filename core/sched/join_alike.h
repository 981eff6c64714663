#pragma once
// Groups with the same axes that have nothing to do with one another become one kernel: the norms of queries and of keys, the
// bias gradients of two linears, small updates of many tensors. That saves launches, and what both read is read once; where a
// launch is little beside the kernel's time, nothing is gained.
#include "loop/program.h"
#include "sched/group.h"
#include "sched/traffic.h"
#include "sched/tuning.h"

namespace kerf::sched {

struct AlikeLimits {
  int64_t max_elements = tuning::alike_elements;    // of the domain
  int64_t max_buffers = tuning::max_alike_buffers;  // in memory, of the joined group
};

// The later group runs early, in the place of the other one. `members_only` as in fuse.h.
void join_alike(const loop::Program& program, const Traffic& traffic, Grouping& grouping,
                const std::vector<bool>& members_only, const AlikeLimits& limits);

}  // namespace kerf::sched
