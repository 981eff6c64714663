#pragma once
// Which inner loop each member of a group runs in, and how full values travel between loops. Data only; fuse.cpp emits.
#include <unordered_map>
#include <vector>

#include "loop/program.h"
#include "sched/group.h"

namespace kerf::sched {

enum class Travel : uint8_t { none, reload, recompute, local_row };

struct Placement {
  int slot = 0;  // members without inner axes: before inner loop `slot`
  int home = 0;  // full members: the inner loop they run in
  std::vector<int>
      loops;  // full members: every loop that computes the value (home first); more than one: recompute
  Travel travel = Travel::none;
};

struct Segments {
  std::vector<Placement> placements;  // per member
  int loop_count = 0;
};

// What members of a group write.
struct Made {
  size_t member;
  bool stored;  // it reaches memory
};
using MadeBuffers = std::unordered_map<target::BufferIndex, Made>;

// A kept row exists once for each of `lanes_per_row` outer iterations that run together.
Segments plan_segments(const loop::Program& program, const Group& group, const MadeBuffers& made,
                       int64_t lanes_per_row);

}  // namespace kerf::sched
