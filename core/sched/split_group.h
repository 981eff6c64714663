#pragma once
// A fused kernel that a target refuses (too many values alive in a tile, no text for the mixture) falls into halves, in
// program order, and these into halves, until each is accepted or is one member. What one part makes and another reads goes
// through memory; cheap members that were computed again are computed in each part that reads them.
#include <functional>
#include <vector>

#include "loop/program.h"
#include "sched/group.h"

namespace kerf::sched {

// Asked of each merged kernel, where given: whether the target has code for it.
using Accepts = std::function<bool(const loop::Kernel&)>;

// `members_only` as in fuse.h. Launches in the order in which they run.
std::vector<loop::Launch> split_refused(const loop::Program& program, const Group& group,
                                        const std::vector<bool>& members_only, const Accepts& accepts);

// What a launch becomes that is merged with no other. A nest gets canonical axes all the same.
loop::Launch alone(const loop::Program& program, const Nest& nest, size_t step);

}  // namespace kerf::sched
