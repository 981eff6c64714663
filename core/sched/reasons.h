#pragma once
// Why the members of a group are together, as text for reports: read off the links that grouping left on them.
#include <vector>

#include "loop/program.h"
#include "sched/group.h"

namespace kerf::sched {

// In the order of the group's members. `members_only` as for `fuse`.
std::vector<loop::Merged> reasons_of(const loop::Program& program, const Group& group,
                                     const std::vector<bool>& members_only);

}  // namespace kerf::sched
