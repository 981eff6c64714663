#include "sched/schedule_program.h"

#include <algorithm>

#include "loop/renumber.h"
#include "sched/align.h"
#include "sched/fuse.h"
#include "sched/group.h"
#include "sched/schedule.h"
#include "sched/traffic.h"

namespace kerf::sched {

namespace {

// Buffers that live only inside the group: temporaries all of whose readers are its members.
std::vector<bool> members_only(const loop::Program& program, const Traffic& traffic, const Grouping& grouping,
                               size_t group) {
  std::vector<bool> result(program.buffers.size(), false);
  for (const Member& member : grouping.groups[group].members) {
    for (target::BufferIndex buffer : traffic.steps[member.step].writes) {
      if (program.buffers[buffer].kind != loop::BufferKind::temp || traffic.returned[buffer]) continue;
      const std::vector<size_t>& readers = traffic.readers[buffer];
      result[buffer] = std::all_of(readers.begin(), readers.end(),
                                   [&](size_t reader) { return grouping.group_of[reader] == group; });
    }
  }
  return result;
}

}  // namespace

loop::Program fuse_kernels(const loop::Program& program) {
  Traffic traffic = traffic_of(program);
  Grouping grouping = group_kernels(program);
  struct Placed {
    uint32_t position;
    std::variant<loop::Launch, target::ExternCall> step;
  };
  std::vector<Placed> placed;
  for (size_t g = 0; g < grouping.groups.size(); ++g) {
    FusedKernel fused = fuse(program, grouping.groups[g], members_only(program, traffic, grouping, g));
    placed.push_back({grouping.groups[g].position,
                      loop::Launch{std::move(fused.kernel), std::move(fused.arguments), true}});
  }
  sym::Facts facts;
  for (const loop::Size& size : program.sizes) {
    facts.set_range(size.symbol, size.range);
    facts.set_modulus(size.symbol, size.modulus);
  }
  for (size_t step = 0; step < program.steps.size(); ++step) {
    if (grouping.group_of[step]) continue;
    const auto* launch = std::get_if<loop::Launch>(&program.steps[step]);
    // A nest that may not be merged (it writes a part of a buffer) still gets canonical axes.
    std::optional<Nest> nest = launch ? take_apart(launch->kernel) : std::nullopt;
    if (nest) {
      Group alone = seed_group(*nest, step, facts);
      FusedKernel fused = fuse(program, alone, std::vector<bool>(program.buffers.size(), false));
      placed.push_back(
          {grouping.position[step], loop::Launch{std::move(fused.kernel), std::move(fused.arguments), true}});
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
  for (auto& step : result.steps) {
    auto* launch = std::get_if<loop::Launch>(&step);
    if (!launch) continue;
    Schedule schedule =
        choose_schedule(launch->kernel, target, {.outer_is_parallel = launch->outer_is_parallel});
    launch->kernel = loop::renumber(apply_schedule(launch->kernel, schedule));
  }
  return result;
}

}  // namespace kerf::sched
