#include "sched/segments.h"

#include <algorithm>

#include "sched/profit.h"
#include "sched/tuning.h"

namespace kerf::sched {

namespace {

// The members whose values `member` reads, each once.
std::vector<size_t> inputs_of(const loop::Program& program, const Member& member, const MadeBuffers& made) {
  std::vector<size_t> inputs;
  const auto& launch = std::get<loop::Launch>(program.steps[member.step]);
  for (const NestLoad& load : member.nest->loads) {
    auto found = made.find(launch.arguments[load.buffer.index]);
    if (found == made.end()) continue;
    size_t input = found->second.member;
    if (std::find(inputs.begin(), inputs.end(), input) == inputs.end()) inputs.push_back(input);
  }
  return inputs;
}

int64_t cost_of(const Nest& nest) {
  int64_t cost = 0;
  for (loop::ValueId id : nest.point_values) {
    const loop::Value& value = nest.kernel->values[id];
    if (value.kind == loop::ValueKind::apply) cost += ops::info(value.op).cost;
    if (value.kind == loop::ValueKind::load) cost += 1;
  }
  return cost;
}

bool row_fits(const Group& group, const Nest& nest, int64_t lanes_per_row) {
  int64_t bytes = 0;
  for (const loop::Store& store : nest.stores) bytes += byte_size(nest.kernel->values[store.value].dtype);
  for (const RootAxis& axis : group.axes) {
    if (!axis.inner) continue;
    if (!axis.extent.is_constant()) return false;  // local buffers have constant sizes
    bytes *= axis.extent.constant();
  }
  return bytes * lanes_per_row <= tuning::local_row_bytes;
}

Travel choose_travel(const Group& group, const Member& member, int64_t cost, bool in_memory,
                     int64_t lanes_per_row) {
  if (in_memory) return Travel::reload;
  if (cost <= tuning::recompute_cost || !row_fits(group, *member.nest, lanes_per_row))
    return Travel::recompute;
  return Travel::local_row;
}

}  // namespace

Segments plan_segments(const loop::Program& program, const Group& group, const MadeBuffers& made,
                       int64_t lanes_per_row) {
  size_t count = group.members.size();
  Segments result;
  result.placements.resize(count);
  std::vector<std::vector<size_t>> readers(count);
  std::vector<int64_t> cost(count);  // of computing a full value again, what it is made of included
  // Forward: the first loop or slot that the inputs allow.
  for (size_t m = 0; m < count; ++m) {
    const Member& member = group.members[m];
    int ready = 0;
    cost[m] = cost_of(*member.nest);
    for (size_t input : inputs_of(program, member, made)) {
      readers[input].push_back(m);
      const Member& from = group.members[input];
      const Placement& at = result.placements[input];
      if (from.is_full && !from.nest->reduces()) cost[m] += cost[input];
      ready = std::max(ready, from.nest->reduces() ? at.home + 1 : from.is_full ? at.home : at.slot);
    }
    result.placements[m].slot = result.placements[m].home = ready;
  }
  // Backward: where every value is needed, and by what way it gets there.
  for (size_t m = count; m-- > 0;) {
    const Member& member = group.members[m];
    Placement& at = result.placements[m];
    if (!member.is_full) continue;
    std::vector<int> needed;
    for (size_t reader : readers[m])
      for (int loop : result.placements[reader].loops)
        if (std::find(needed.begin(), needed.end(), loop) == needed.end()) needed.push_back(loop);
    std::sort(needed.begin(), needed.end());
    if (member.nest->reduces()) needed.clear();  // its readers take the folded value
    if (!needed.empty()) at.home = std::max(at.home, needed.front());
    at.loops = {at.home};
    if (needed.empty() || needed.back() == at.home) continue;
    bool in_memory = false;
    const auto& launch = std::get<loop::Launch>(program.steps[member.step]);
    for (const loop::Store& store : member.nest->stores)
      in_memory = in_memory || made.at(launch.arguments[store.buffer.index]).stored;
    at.travel = choose_travel(group, member, cost[m], in_memory, lanes_per_row);
    if (at.travel == Travel::recompute) at.loops = needed;
    if (at.travel == Travel::recompute && at.loops.front() != at.home)
      at.loops.insert(at.loops.begin(), at.home);
  }
  for (size_t m = 0; m < count; ++m)
    if (group.members[m].is_full)
      result.loop_count = std::max(result.loop_count, result.placements[m].loops.back() + 1);
  return result;
}

}  // namespace kerf::sched
