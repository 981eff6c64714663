#pragma once
// A Schedule: how one kernel's loops are run, as a list of decisions that can be printed. `choose_schedule` decides from
// accesses and the target (tile.cpp); `apply_schedule` carries the decisions out without judging (apply.cpp). A scheduled
// kernel computes the same as the unscheduled one.
//
//   order x1, x0       the loops around the kernel's body, outermost first
//   tile x0, x1 by 16  both are split, then ordered x0_o, x1_o, x0_i, x1_i
//   split x0 by 4096   x0 becomes 4096*x0_o + x0_i, x0_i < min(4096, extent - 4096*x0_o)
//   grid x0_o          spread over threads
//   vector x0_i 32     32 iterations at a time
#include <string>
#include <variant>
#include <vector>

#include "loop/kernel.h"
#include "target/cpu.h"

namespace kerf::sched {

// The perfect chain of loops around everything else, outermost first, in its new order.
struct OrderOuter {
  std::vector<loop::AxisId> axes;
};

// The last axis of the outer chain is split; both halves stay where it was.
struct Split {
  loop::AxisId axis;
  int64_t chunk = 0;
};

// The last two axes of the outer chain are split by the same size, and the tile's loops become the innermost.
struct Tile {
  loop::AxisId rows, columns;
  int64_t size = 0;
};

// Roles of axes; for a split axis, of its outer and inner half.
struct Bind {
  loop::AxisId axis;
  loop::Role role = loop::Role::serial;
  int lanes = 0;
  enum class Half : uint8_t { whole, outer, inner } half = Half::whole;
};

// The axis runs innermost within its reduce.
struct ReduceLast {
  loop::AxisId axis;
};

using Decision = std::variant<OrderOuter, Split, Tile, Bind, ReduceLast>;

struct Schedule {
  std::vector<Decision> decisions;
};

std::string to_text(const Schedule& schedule, const loop::Kernel& kernel);

struct ScheduleOptions {
  // Every axis of the outer chain is independent of the others (true for fused groups). Otherwise it is proved from the
  // stores, and axes for which that fails stay serial inside the others.
  bool outer_is_parallel = false;
};

Schedule choose_schedule(const loop::Kernel& kernel, const target::CpuTarget& target,
                         const ScheduleOptions& options);

loop::Kernel apply_schedule(const loop::Kernel& kernel, const Schedule& schedule);

}  // namespace kerf::sched
