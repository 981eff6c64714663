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
#include "sched/traffic.h"

namespace kerf::sched {

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

// What a launch becomes that is merged with no other. A nest gets canonical axes all the same.
loop::Launch alone(const loop::Program& program, const Nest& nest, size_t step, const sym::Facts& facts) {
  const std::vector<bool> none_inside(program.buffers.size(), false);
  Group group = seed_group(nest, step, facts);
  FusedKernel fused = fuse(program, group, none_inside);
  return {std::move(fused.kernel), std::move(fused.arguments), true, reasons_of(program, group, none_inside)};
}

// The buffers that a launch writes.
std::vector<target::BufferIndex> results_of(const loop::Program& program, const Member& member) {
  const auto& launch = std::get<loop::Launch>(program.steps[member.step]);
  std::vector<target::BufferIndex> results;
  for (const loop::Store& store : member.nest->stores)
    results.push_back(launch.arguments[store.buffer.index]);
  return results;
}

}  // namespace

loop::Program fuse_kernels(const loop::Program& before, const ColumnLimits& limits, const Accepts& accepts) {
  const GroupedColumns grouped = split_columns(before, limits);
  const loop::Program& program = grouped.split ? *grouped.split : before;
  const Grouping& grouping = grouped.grouping;
  Traffic traffic = traffic_of(program);
  struct Placed {
    uint32_t position;
    std::variant<loop::Launch, target::ExternCall> step;
  };
  std::vector<Placed> placed;
  std::vector<bool> inside = members_only(program, traffic, grouping);
  const sym::Facts facts = loop::facts_of(program.sizes);
  for (const Group& group : grouping.groups) {
    if (group.members.empty()) continue;
    FusedKernel fused = fuse(program, group, inside);
    if (fused.kernel.body.empty()) continue;  // all it made is made again where it is read
    if (accepts && group.members.size() > 1 && !accepts(fused.kernel)) {
      for (const Member& member : group.members) {
        // What another group computes too is there, unless that group keeps it to itself.
        std::vector<target::BufferIndex> results = results_of(program, member);
        bool is_there = member.is_copy && std::none_of(results.begin(), results.end(),
                                                       [&](target::BufferIndex b) { return inside[b]; });
        if (!is_there) placed.push_back({group.position, alone(program, *member.nest, member.step, facts)});
      }
      continue;
    }
    placed.push_back({group.position, loop::Launch{std::move(fused.kernel), std::move(fused.arguments), true,
                                                   reasons_of(program, group, inside)}});
  }
  for (size_t step = 0; step < program.steps.size(); ++step) {
    if (grouping.group_of[step]) continue;
    // One that may not be merged (it writes a part of a buffer).
    if (const Nest* nest = grouping.nests[step].get()) {
      placed.push_back({grouping.position[step], alone(program, *nest, step, facts)});
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
      result.steps.push_back(std::move(scheduled));
    }
  }
  return result;
}

}  // namespace kerf::sched
