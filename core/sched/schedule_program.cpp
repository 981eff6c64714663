#include "sched/schedule_program.h"

#include <algorithm>

#include "loop/renumber.h"
#include "sched/align.h"
#include "sched/columns.h"
#include "sched/fuse.h"
#include "sched/group.h"
#include "sched/pieces.h"
#include "sched/reasons.h"
#include "sched/schedule.h"
#include "sched/split_group.h"
#include "sched/traffic.h"
#include "sched/tuning.h"
#include "sched/unroll_pieces.h"

namespace kerf::sched {

using sym::Expr;

namespace {

// Per buffer: a temporary that every reader finds in its own group, so that it never reaches memory.
std::vector<bool> members_only(const loop::Program& program, const Traffic& traffic,
                               const Grouping& grouping) {
  std::vector<bool> result(program.buffers.size());
  for (size_t buffer = 0; buffer < result.size(); ++buffer)
    result[buffer] = program.buffers[buffer].kind == loop::BufferKind::temp && !traffic.returned[buffer];
  for (size_t step = 0; step < program.steps.size(); ++step)
    if (!grouping.group_of[step])
      for (target::BufferIndex buffer : traffic.steps[step].reads) result[buffer] = false;
  for (const Group& group : grouping.groups) {
    auto has = [&](size_t step) {
      return std::any_of(group.members.begin(), group.members.end(),
                         [&](const Member& m) { return m.step == step; });
    };
    for (const Member& member : group.members)
      for (target::BufferIndex buffer : traffic.steps[member.step].reads)
        for (size_t writer : traffic.writers[buffer])
          if (!has(writer)) result[buffer] = false;
  }
  return result;
}

// Whether every index is a sum of axes times strides.
bool is_affine(const Nest& nest) {
  std::vector<axis::AxisInfo> axes = nest.all_axes();
  auto affine = [&](Expr index) { return !index.valid() || axis::linear_form(index, axes); };
  const loop::Kernel& kernel = *nest.kernel;
  return std::ranges::all_of(kernel.values, [&](const loop::Value& value) { return affine(value.index); }) &&
         std::ranges::all_of(nest.stores, [&](const loop::Store& store) { return affine(store.index); });
}

// Nests on axes over which their accesses are affine, where there are such: what reads a value through a view of other sizes
// then meets its producer. Empty where no nest changes.
std::optional<loop::Program> cut_nests(const loop::Program& program) {
  std::optional<loop::Program> result;
  for (size_t step = 0; step < program.steps.size(); ++step) {
    const auto* launch = std::get_if<loop::Launch>(&program.steps[step]);
    if (!launch) continue;
    std::optional<Nest> nest = take_apart(launch->kernel);
    if (!nest || is_affine(*nest)) continue;
    if (!result) result = program;
    result->steps[step] = alone(program, *nest, step);
  }
  return result;
}

// Large results are in memory before anybody reads them again: their stores need not bring the old lines into the cache.
void stream_large(loop::Kernel& kernel) {
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    loop::Buffer& buffer = kernel.buffers[loop::BufferId(i)];
    Expr count = loop::element_count(kernel, loop::BufferId(i));
    buffer.non_temporal = buffer.mode == loop::BufferMode::out && count.is_constant() &&
                          count.constant() >= tuning::streamed_bytes / byte_size(buffer.dtype);
  }
}

}  // namespace

loop::Program fuse_kernels(const loop::Program& before, const FuseLimits& limits, const Accepts& accepts) {
  const std::optional<loop::Program> cut = cut_nests(before);
  const std::optional<loop::Program> unrolled = unroll_pieces(cut ? *cut : before, limits.pieces);
  const loop::Program& nests = unrolled ? *unrolled : cut ? *cut : before;
  GroupedColumns grouped = split_columns(nests, limits.columns);
  const loop::Program& program = grouped.split ? *grouped.split : nests;
  Grouping& grouping = grouped.grouping;
  const Traffic traffic = traffic_of(program);
  const std::vector<bool> inside = members_only(program, traffic, grouping);
  join_alike(program, traffic, grouping, inside, limits.alike);
  struct Placed {
    uint32_t position;
    std::variant<loop::Launch, target::ExternCall> step;
  };
  std::vector<Placed> placed;
  for (const Group& group : grouping.groups) {
    if (group.members.empty()) continue;
    FusedKernel fused = fuse(program, group, inside);
    if (fused.kernel.body.empty()) continue;  // all it made is made again where it is read
    if (accepts && group.members.size() > 1 && !accepts(fused.kernel)) {
      for (loop::Launch& launch : split_refused(program, group, inside, accepts))
        placed.push_back({group.position, std::move(launch)});
      continue;
    }
    placed.push_back({group.position, loop::Launch{std::move(fused.kernel), std::move(fused.arguments), true,
                                                   reasons_of(program, group, inside)}});
  }
  for (size_t step = 0; step < program.steps.size(); ++step) {
    if (grouping.group_of[step]) continue;
    // One that may not be merged (it updates a buffer).
    if (const Nest* nest = grouping.nests[step].get()) {
      placed.push_back({grouping.position[step], alone(program, *nest, step)});
    } else {
      placed.push_back({grouping.position[step], program.steps[step]});
    }
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const Placed& a, const Placed& b) { return a.position < b.position; });
  loop::Program result = program;
  result.steps.clear();
  for (Placed& one : placed) result.steps.push_back(std::move(one.step));
  return result;
}

loop::Program schedule_kernels(const loop::Program& program, const target::CpuTarget& target) {
  loop::Program result = program;
  result.steps.clear();
  for (const auto& step : program.steps) {
    const auto* launch = std::get_if<loop::Launch>(&step);
    if (!launch) {
      result.steps.push_back(step);
      continue;
    }
    for (const loop::Kernel& kernel : split_pieces(launch->kernel)) {
      Schedule schedule = choose_schedule(kernel, target, {.outer_is_parallel = launch->outer_is_parallel});
      loop::Launch scheduled = *launch;
      scheduled.kernel = loop::renumber(apply_schedule(kernel, schedule));
      stream_large(scheduled.kernel);
      result.steps.push_back(std::move(scheduled));
    }
  }
  return result;
}

}  // namespace kerf::sched
