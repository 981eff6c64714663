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
}

// Each simple kernel joins a group of its producers, else of kernels reading the same data, else starts its own.
Grouping Grouper::run() {
  for (size_t step = 0; step < program_.steps.size(); ++step) {
    result_.position[step] = static_cast<uint32_t>(step);
    const auto* launch = std::get_if<loop::Launch>(&program_.steps[step]);
    std::optional<Nest> nest = launch ? take_apart(launch->kernel) : std::nullopt;
    if (nest && writes_are_stable(step)) place(step, *nest);
    mark_consumed(step);
  }
  copy_cheap_producers();
  merge_siblings();
  return std::move(result_);
}

uint32_t Grouper::runs_at(size_t step) const {
  return result_.group_of[step] ? result_.groups[*result_.group_of[step]].position : result_.position[step];
}

// Kernels that write parts of a buffer or overwrite an input are ordered against others by their place alone.
bool Grouper::writes_are_stable(size_t step) const {
  return std::all_of(traffic_.steps[step].writes.begin(), traffic_.steps[step].writes.end(),
                     [&](BufferIndex b) { return traffic_.is_stable(b, program_); });
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
      if (writer < step && result_.group_of[writer] != id) ready = ready && runs_at(writer) < g.position;
  if (ready && reads_are_stable(step)) return g.position;
  if (outside_consumers_[id] > 0) return std::nullopt;
  for (const Member& member : g.members)
    if (!reads_are_stable(member.step)) return std::nullopt;
  return static_cast<uint32_t>(step);
}

// Tries every shared buffer as the link, those that determine most of the nest first: what the group writes and the nest
// reads, then what the nest writes and the group reads (a producer taken in late), then what both read.
std::optional<Alignment> Grouper::find_alignment(const Group& g, const Nest& nest, size_t step,
                                                 bool is_copy) const {
  std::vector<Touch> nest_reads = reads_of(nest, step), nest_stores = stores_of(nest, step);
  struct Candidate {
    Expr position;  // over root axes
    Expr index;     // over nest axes
    Link link;
    BufferIndex buffer;
  };
  std::vector<Candidate> candidates;
  auto link = [&](const std::vector<Touch>& ours, const std::vector<Touch>& theirs, Link kind) {
    for (const Touch& a : ours)
      for (const Touch& b : theirs)
        if (a.buffer == b.buffer) candidates.push_back({a.index, b.index, kind, a.buffer});
  };
  std::vector<Touch> group_stores, group_reads;
  for (const Member& member : g.members) {
    for (Touch t : stores_of(member.nest, member.step))
      group_stores.push_back({t.buffer, on_root(member, t.index, g.facts)});
    for (Touch t : reads_of(member.nest, member.step))
      group_reads.push_back({t.buffer, on_root(member, t.index, g.facts)});
  }
  link(group_stores, nest_reads, Link::reads);
  link(group_reads, nest_stores, Link::writes);
  link(group_reads, nest_reads, Link::shares);
  // Every buffer passed between the nest and the group is read at the very point where it was written.
  auto is_local = [&](const Alignment& alignment) {
    auto matches = [&](const std::vector<Touch>& ours, const std::vector<Touch>& theirs) {
      for (const Touch& a : ours) {
        for (const Touch& b : theirs) {
          if (a.buffer != b.buffer) continue;
          Expr moved = sym::simplify(sym::substitute(a.index, alignment.group_change), alignment.facts);
          if (moved != on_root(alignment.member, b.index, alignment.facts)) return false;
        }
      }
      return true;
    };
    return matches(group_stores, nest_reads) && matches(group_reads, nest_stores) &&
           matches(group_stores, nest_stores);
  };
  std::optional<Alignment> broadcast;
  for (const Candidate& candidate : candidates) {
    std::optional<Alignment> alignment = align(g, nest, candidate.position, candidate.index, is_copy);
    if (!alignment || !is_local(*alignment) || meets_unfinished_sum(g, alignment->member, step)) continue;
    if (!join_pays(g, *alignment, candidate.position)) continue;
    if (alignment->member.sums_columns && !columns_pay(*alignment, limits_.min_steps)) continue;
    alignment->member.link = candidate.link;
    alignment->member.through = candidate.buffer;
    if (!alignment->broadcasts) return alignment;
    if (!broadcast) broadcast = std::move(alignment);
  }
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
    std::optional<Alignment> alignment = find_alignment(merged, member->nest, member->step, member->is_copy);
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

std::vector<Grouper::Touch> Grouper::stores_of(const Nest& nest, size_t step) const {
  std::vector<Touch> touches;
  for (const loop::Store& store : nest.stores)
    touches.push_back({launch(step).arguments[store.buffer.index], store.index});
  return touches;
}

std::vector<Grouper::Touch> Grouper::reads_of(const Nest& nest, size_t step) const {
  std::vector<Touch> touches;
  for (const NestLoad& load : loads_of(nest))
    touches.push_back({launch(step).arguments[load.buffer.index], load.index});
  return touches;
}

Grouping group_kernels(const loop::Program& program, const ColumnLimits& limits) {
  return Grouper(program, limits).run();
}

}  // namespace kerf::sched
