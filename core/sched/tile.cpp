// Decides how a kernel's loops run on the CPU.
//
//   flat     no inner loops: the outer axis walked at stride 1 becomes the vector axis, in chunks spread over threads
//   tiles    flat, but something large is read at stride 1 over another axis (a transpose): square tiles, so that every
//            cache line is read once; codegen transposes a tile in registers
//   rows     inner loops run along memory: they are vector loops, outer axes are the grid
//   columns  inner loops run across memory (a sum over rows): lanes are neighbouring outer iterations, inner loops serial
#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "axis/linear.h"
#include "loop/walk.h"
#include "sched/outer.h"
#include "sched/profit.h"
#include "sched/schedule.h"
#include "sched/tuning.h"

namespace kerf::sched {

using loop::AxisId;

namespace {

struct Chooser {
  const loop::Kernel& kernel;
  const target::CpuTarget& target;
  sym::Facts facts = loop::facts_of(kernel);
  std::vector<PlacedAccess> accesses = placed_accesses(kernel);

  int64_t extent(AxisId axis) const { return hinted(kernel.axes[axis].extent, facts); }

  // For every size, not just the hinted one.
  bool is_at_most(AxisId axis, int64_t bound) const {
    sym::Range range = sym::range_of(kernel.axes[axis].extent, facts);
    return range.hi && *range.hi <= bound;
  }

  // How well lanes along the axis suit the accesses: bytes moved at stride 1, less those that lanes must gather or scatter,
  // one by one. What does not depend on the axis is one load for all lanes and does not count: in the sum of g[r, k]*m[r]
  // over r, lanes along r load m at stride 1, but gather g.
  int64_t suitability(AxisId id) const {
    constexpr int64_t kGathered = 4;
    int64_t bytes = 0;
    for (const PlacedAccess& access : accesses) {
      if (std::find(access.axes.begin(), access.axes.end(), id) == access.axes.end()) continue;
      auto stride = axis::stride_over(access.index, kernel.axes[id].symbol);
      if (stride && stride->is_constant(0)) continue;
      int64_t moved = access.is_store ? 2 * access.bytes : access.bytes;
      bytes += stride && stride->is_constant(1) ? moved : -kGathered * moved;
    }
    return bytes;
  }

  AxisId best_of(const std::vector<AxisId>& axes) const {
    AxisId best;
    int64_t best_bytes = std::numeric_limits<int64_t>::min();
    for (AxisId axis : axes) {
      int64_t bytes = suitability(axis);
      if (bytes >= best_bytes) best = axis, best_bytes = bytes;
    }
    return best;
  }

  // Vector instructions of the most expensive value anywhere.
  int kernel_cost() const {
    int cost = 0;
    for (const loop::Value& value : kernel.values) cost = std::max(cost, cost_of(value));
    return cost;
  }

  // `cost`: of the most expensive value in the loop over `axis`. Expensive bodies keep one register per value.
  int lanes(int unroll, AxisId axis, int cost) const {
    constexpr int kElementBytes = 4;  // f32; wider types take several registers
    constexpr int kExpensive = 10;
    int width = target.vector_bytes / kElementBytes;
    int wanted = width * (cost >= kExpensive ? 1 : unroll);
    const sym::Expr& n = kernel.axes[axis].extent;
    if (n.is_constant()) {
      int64_t longest = std::max<int64_t>(n.constant(), 1);
      wanted = static_cast<int>(
          std::min<int64_t>(wanted, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(longest)))));
    }
    return wanted;
  }

  // A chunk that divides the extent if there is one near the target size, so that no chunk has a tail.
  int64_t chunk_of(AxisId axis, int lane_count) const {
    const sym::Expr& n = kernel.axes[axis].extent;
    if (n.is_constant())
      for (int64_t chunk = 2 * tuning::chunk_elements; chunk >= tuning::chunk_elements / 2;
           chunk -= lane_count)
        if (n.constant() % chunk == 0) return chunk;
    return tuning::chunk_elements;
  }
};

void bind_grid(Schedule& schedule, const std::vector<AxisId>& axes) {
  for (AxisId axis : axes) schedule.decisions.push_back(Bind{axis, loop::Role::grid, 0, Bind::Half::whole});
}

// The vector axis stands inside the other parallel axes, which are the grid, and around the serial ones; it is split into
// chunks for the grid where it is longer than one.
Schedule vector_outside(const Chooser& choose, std::vector<AxisId> parallel, AxisId vector,
                        const std::vector<AxisId>& serial, int64_t chunk, int lanes) {
  Schedule schedule;
  std::erase(parallel, vector);
  std::vector<AxisId> order = parallel;
  order.push_back(vector);
  order.insert(order.end(), serial.begin(), serial.end());
  schedule.decisions.push_back(OrderOuter{order});
  bind_grid(schedule, parallel);
  if (choose.is_at_most(vector, chunk)) {
    schedule.decisions.push_back(Bind{vector, loop::Role::vector, lanes, Bind::Half::whole});
    return schedule;
  }
  schedule.decisions.push_back(Split{vector, chunk});
  schedule.decisions.push_back(Bind{vector, loop::Role::grid, 0, Bind::Half::outer});
  schedule.decisions.push_back(Bind{vector, loop::Role::vector, lanes, Bind::Half::inner});
  return schedule;
}

// The axis along which a flat kernel's transposed operands run, if lanes along `vector` would gather them.
std::optional<AxisId> transposed_axis(const Chooser& choose, const std::vector<AxisId>& parallel,
                                      AxisId vector, int64_t tile) {
  std::optional<AxisId> best;
  int64_t most = 0;
  for (AxisId axis : parallel) {
    if (axis == vector || choose.extent(axis) < tile) continue;
    int64_t bytes = 0;
    for (const PlacedAccess& access : choose.accesses) {
      auto along = axis::stride_over(access.index, choose.kernel.axes[axis].symbol);
      auto across = axis::stride_over(access.index, choose.kernel.axes[vector].symbol);
      bool transposed = along && along->is_constant(1) && across && !across->is_constant(0);
      if (transposed && !access.is_store) bytes += access.bytes;
    }
    if (bytes > most) best = axis, most = bytes;
  }
  return best;
}

Schedule tiles(std::vector<AxisId> parallel, AxisId rows, AxisId vector, int lanes) {
  Schedule schedule;
  std::erase(parallel, rows);
  std::erase(parallel, vector);
  std::vector<AxisId> order = parallel;
  order.insert(order.end(), {rows, vector});
  schedule.decisions = {OrderOuter{order}, Tile{rows, vector, lanes}};
  bind_grid(schedule, parallel);
  for (AxisId axis : {rows, vector})
    schedule.decisions.push_back(Bind{axis, loop::Role::grid, 0, Bind::Half::outer});
  schedule.decisions.push_back(Bind{rows, loop::Role::unrolled, 0, Bind::Half::inner});
  schedule.decisions.push_back(Bind{vector, loop::Role::vector, lanes, Bind::Half::inner});
  return schedule;
}

Schedule flat(const Chooser& choose, const std::vector<AxisId>& parallel, const std::vector<AxisId>& serial) {
  AxisId vector = choose.best_of(parallel);
  int width = choose.target.vector_bytes / 4;
  if (serial.empty() && choose.extent(vector) >= width)
    if (auto rows = transposed_axis(choose, parallel, vector, width))
      return tiles(parallel, *rows, vector, width);
  int lanes = choose.lanes(2, vector, choose.kernel_cost());
  // Serial axes (colliding scatters) run once per chunk, which must then be the lanes themselves.
  int64_t chunk = serial.empty() ? choose.chunk_of(vector, lanes) : lanes;
  return vector_outside(choose, parallel, vector, serial, chunk, lanes);
}

Schedule columns(const Chooser& choose, const std::vector<AxisId>& parallel, AxisId vector,
                 const std::vector<AxisId>& serial) {
  // Wide lanes use whole cache lines per row, unless that leaves threads without work.
  int lanes = choose.lanes(4, vector, choose.kernel_cost()), width = choose.target.vector_bytes / 4;
  int64_t iterations = 1;
  for (AxisId axis : parallel) iterations *= choose.extent(axis);
  while (lanes > width && iterations / lanes < tuning::min_parallel_rows) lanes /= 2;
  return vector_outside(choose, parallel, vector, serial, lanes, lanes);
}

Schedule rows(const Chooser& choose, const std::vector<AxisId>& parallel, const std::vector<AxisId>& serial,
              const std::vector<InnerLoop>& loops) {
  Schedule schedule;
  std::vector<AxisId> order = parallel;
  order.insert(order.end(), serial.begin(), serial.end());
  if (!order.empty()) schedule.decisions.push_back(OrderOuter{order});
  bind_grid(schedule, parallel);
  for (const InnerLoop& inner : loops) {
    AxisId vector = inner.is_reduce ? choose.best_of(inner.axes) : inner.axes.back();
    if (inner.is_reduce && vector != inner.axes.back()) schedule.decisions.push_back(ReduceLast{vector});
    schedule.decisions.push_back(Bind{vector, loop::Role::vector,
                                      choose.lanes(inner.is_reduce ? 4 : 2, vector, inner.cost),
                                      Bind::Half::whole});
  }
  return schedule;
}

}  // namespace

Schedule choose_schedule(const loop::Kernel& kernel, const target::CpuTarget& target,
                         const ScheduleOptions& options) {
  Chooser choose{kernel, target};
  std::vector<AxisId> parallel, serial;
  for (AxisId axis : outer_chain(kernel)) {
    bool independent = options.outer_is_parallel || is_independent(kernel, axis);
    (independent ? parallel : serial).push_back(axis);
  }
  std::vector<InnerLoop> loops = innermost_loops(kernel);
  if (loops.empty()) {
    if (!parallel.empty()) return flat(choose, parallel, serial);
    return {};
  }
  if (parallel.empty()) {
    // No independent outer axis: inner folds may still run along memory.
    std::vector<InnerLoop> folds;
    for (const InnerLoop& inner : loops)
      if (inner.is_reduce) folds.push_back(inner);
    return rows(choose, parallel, serial, options.outer_is_parallel ? loops : folds);
  }
  int64_t along = 0;
  for (const InnerLoop& inner : loops)
    along += choose.suitability(inner.is_reduce ? choose.best_of(inner.axes) : inner.axes.back());
  AxisId across = choose.best_of(parallel);
  if (choose.suitability(across) > along) return columns(choose, parallel, across, serial);
  return rows(choose, parallel, serial, options.outer_is_parallel ? loops : std::vector<InnerLoop>{});
}

}  // namespace kerf::sched
