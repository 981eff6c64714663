#include "sched/group.h"

#include <algorithm>

#include "sched/grouper.h"
#include "sched/profit.h"
#include "sched/tuning.h"
#include "sym/simplify.h"

namespace kerf::sched {

using sym::Expr;
using target::BufferIndex;

namespace {

void add_once(std::vector<size_t>& ids, size_t id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

}  // namespace

Grouper::Grouper(const loop::Program& program, const ColumnLimits& limits)
    : program_(program),
      limits_(limits),
      traffic_(traffic_of(program)),
      size_facts_(loop::facts_of(program.sizes)) {
  result_.group_of.resize(program.steps.size());
  result_.position.resize(program.steps.size());
  result_.nests.resize(program.steps.size());
}

// Each simple kernel joins a group of its producers, else of kernels reading the same data, else starts its own.
Grouping Grouper::run() {
  for (size_t step = 0; step < program_.steps.size(); ++step) {
    result_.position[step] = static_cast<uint32_t>(step);
    const auto* launch = std::get_if<loop::Launch>(&program_.steps[step]);
    if (std::optional<Nest> nest = launch ? take_apart(launch->kernel) : std::nullopt) {
      result_.nests[step] = std::make_unique<const Nest>(std::move(*nest));
      if (may_be_merged(step)) place(step, *result_.nests[step]);
    }
    mark_consumed(step);
  }
  copy_cheap_producers();
  merge_siblings();
  return std::move(result_);
}

// Kernels that update a buffer or overwrite an input are ordered against others by their place alone.
bool Grouper::may_be_merged(size_t step) const {
  return std::all_of(
      traffic_.steps[step].writes.begin(), traffic_.steps[step].writes.end(),
      [&](BufferIndex b) { return traffic_.is_stable(b, program_) && !program_.buffers[b].realised; });
}

bool Grouper::reads_are_stable(size_t step) const {
  return std::all_of(traffic_.steps[step].reads.begin(), traffic_.steps[step].reads.end(),
                     [&](BufferIndex b) { return traffic_.is_stable(b, program_); });
}

void Grouper::place(size_t step, const Nest& nest) {
  for (size_t id : producer_groups(step))
    if (join(id, step, nest)) return absorb_others(id, step);
  for (size_t id : sibling_groups(step))
    if (join(id, step, nest)) return absorb_others(id, step);
  Group fresh = seed_group(nest, step, size_facts_);
  fresh.position = static_cast<uint32_t>(step);
  result_.groups.push_back(std::move(fresh));
  outside_consumers_.push_back(0);
  result_.group_of[step] = result_.groups.size() - 1;
  absorb_others(result_.groups.size() - 1, step);
}

std::vector<size_t> Grouper::producer_groups(size_t step) const {
  std::vector<size_t> ids;
  for (BufferIndex buffer : traffic_.steps[step].reads)
    for (size_t writer : traffic_.writers[buffer])
      if (writer < step && result_.group_of[writer]) add_once(ids, *result_.group_of[writer]);
  std::sort(ids.begin(), ids.end(),
            [&](size_t a, size_t b) { return result_.groups[a].position > result_.groups[b].position; });
  return ids;
}

std::vector<size_t> Grouper::sibling_groups(size_t step) const {
  std::vector<size_t> ids;
  for (BufferIndex buffer : traffic_.steps[step].reads) {
    if (hinted(program_.buffers[buffer].elements, size_facts_) < tuning::min_shared_elements) continue;
    for (size_t reader : traffic_.readers[buffer])
      if (reader < step && result_.group_of[reader]) add_once(ids, *result_.group_of[reader]);
  }
  std::sort(ids.begin(), ids.end(), std::greater<>());
  if (ids.size() > static_cast<size_t>(tuning::max_siblings_tried)) ids.resize(tuning::max_siblings_tried);
  return ids;
}

bool Grouper::join(size_t id, size_t step, const Nest& nest) {
  std::optional<uint32_t> position = common_position(id, step);
  if (!position) return false;
  std::optional<Alignment> alignment = find_alignment(group(id), nest, step, false);
  if (!alignment) return false;
  accept(group(id), std::move(*alignment), step);
  group(id).position = *position;
  result_.group_of[step] = id;
  return true;
}

// Where the group may run once `step` belongs to it.
std::optional<uint32_t> Grouper::common_position(size_t id, size_t step) const {
  const Group& g = result_.groups[id];
  bool ready = true;
  for (BufferIndex buffer : traffic_.steps[step].reads)
    for (size_t writer : traffic_.writers[buffer])
      if (writer < step && result_.group_of[writer] != id)
        ready = ready && result_.runs_at(writer) < g.position;
  if (ready && reads_are_stable(step)) return g.position;
  if (outside_consumers_[id] > 0) return std::nullopt;
  for (const Member& member : g.members)
    if (!reads_are_stable(member.step)) return std::nullopt;
  return static_cast<uint32_t>(step);
}

// Everything that the nest reads or writes in the place of the group's reads and writes of the same buffer.
std::vector<Grouper::Shared> Grouper::shared_touches(const Group& g, const Nest& nest, size_t step) const {
  std::vector<Shared> shared;
  auto add = [&](BufferIndex buffer, Expr position, bool stored) {
    for (size_t i = 0; i < nest.loads.size(); ++i)
      if (launch(step).arguments[nest.loads[i].buffer.index] == buffer)
        shared.push_back({buffer, position, nest.loads[i].index, stored, false, i});
    for (size_t i = 0; i < nest.stores.size(); ++i)
      if (launch(step).arguments[nest.stores[i].buffer.index] == buffer)
        shared.push_back({buffer, position, nest.stores[i].index, stored, true, i});
  };
  for (const Member& member : g.members) {
    const std::vector<BufferIndex>& arguments = launch(member.step).arguments;
    for (size_t i = 0; i < member.loads.size(); ++i)
      add(arguments[member.nest->loads[i].buffer.index], member.loads[i], false);
    for (size_t i = 0; i < member.stores.size(); ++i)
      add(arguments[member.nest->stores[i].buffer.index], member.stores[i], true);
  }
  return shared;
}

// Tries every shared buffer as the link, those that determine most of the nest first: what the group writes and the nest
// reads, then what the nest writes and the group reads (a producer taken in late), then what both read.
std::optional<Alignment> Grouper::find_alignment(const Group& g, const Nest& nest, size_t step,
                                                 bool is_copy) const {
  const std::vector<Shared> shared = shared_touches(g, nest, step);
  // Every buffer passed between the nest and the group is read at the very point where it was written. (Two that write a
  // buffer write different pieces of it.)
  auto is_local = [&](const Alignment& alignment) {
    const Member& member = alignment.member;
    return std::all_of(shared.begin(), shared.end(), [&](const Shared& s) {
      if (s.stored == s.nest_stores) return true;
      Expr moved = s.position;
      if (!alignment.group_change.empty())
        moved = sym::simplify(sym::substitute(moved, alignment.group_change), alignment.facts);
      return moved == (s.nest_stores ? member.stores : member.loads)[s.access];
    });
  };
  std::optional<Alignment> broadcast;
  auto try_link = [&](const Shared& s, Link link) -> std::optional<Alignment> {
    std::optional<Alignment> alignment = align(g, nest, s.position, s.index, is_copy);
    if (!alignment) return std::nullopt;
    place_accesses(alignment->member, alignment->facts);
    if (!is_local(*alignment) || meets_unfinished_sum(g, alignment->member, step)) return std::nullopt;
    if (!join_pays(g, *alignment, s.position)) return std::nullopt;
    if (alignment->member.sums_columns && !columns_pay(*alignment, limits_.min_steps)) return std::nullopt;
    alignment->member.link = link;
    alignment->member.through = s.buffer;
    if (!alignment->broadcasts) return alignment;
    if (!broadcast) broadcast = std::move(alignment);
    return std::nullopt;
  };
  auto try_all = [&](bool stored, bool nest_stores, Link link) -> std::optional<Alignment> {
    for (const Shared& s : shared)
      if (s.stored == stored && s.nest_stores == nest_stores)
        if (std::optional<Alignment> alignment = try_link(s, link)) return alignment;
    return std::nullopt;
  };
  if (auto alignment = try_all(true, false, Link::reads)) return alignment;
  if (auto alignment = try_all(false, true, Link::writes)) return alignment;
  if (auto alignment = try_all(false, false, Link::shares)) return alignment;
  return broadcast;
}

// A column sum is whole only after all iterations over its axis: no member reads it.
bool Grouper::meets_unfinished_sum(const Group& g, const Member& member, size_t step) const {
  auto reads_of_sum = [&](size_t reader, size_t sum) {
    const std::vector<BufferIndex>& reads = traffic_.steps[reader].reads;
    return std::any_of(reads.begin(), reads.end(), [&](BufferIndex buffer) {
      const std::vector<BufferIndex>& writes = traffic_.steps[sum].writes;
      return std::find(writes.begin(), writes.end(), buffer) != writes.end();
    });
  };
  return std::any_of(g.members.begin(), g.members.end(), [&](const Member& other) {
    return (other.sums_columns && reads_of_sum(step, other.step)) ||
           (member.sums_columns && reads_of_sum(other.step, step));
  });
}

// Other groups that only feed this one move into it.
void Grouper::absorb_others(size_t id, size_t step) {
  for (size_t other : producer_groups(step)) {
    if (other == id || outside_consumers_[other] > 0) continue;  // `step` itself is counted only afterwards
    absorb(id, other);
  }
}

void Grouper::absorb(size_t id, size_t other) {
  Group& from = group(other);
  if (from.position > group(id).position) return;
  if (from.members.size() + group(id).members.size() > static_cast<size_t>(tuning::max_group_members)) return;
  for (const Member& member : from.members)
    if (!reads_are_stable(member.step)) return;
  Group merged = group(id);
  for (auto member = from.members.rbegin(); member != from.members.rend(); ++member) {
    std::optional<Alignment> alignment = find_alignment(merged, *member->nest, member->step, member->is_copy);
    if (!alignment) return;
    accept(merged, std::move(*alignment), member->step);
  }
  for (const Member& member : from.members) result_.group_of[member.step] = id;
  from.members.clear();
  group(id) = std::move(merged);
}

void Grouper::mark_consumed(size_t step) {
  for (BufferIndex buffer : traffic_.steps[step].reads)
    for (size_t writer : traffic_.writers[buffer])
      if (writer < step && result_.group_of[writer] && result_.group_of[writer] != result_.group_of[step])
        ++outside_consumers_[*result_.group_of[writer]];
}

Grouping group_kernels(const loop::Program& program, const ColumnLimits& limits) {
  return Grouper(program, limits).run();
}

}  // namespace kerf::sched
