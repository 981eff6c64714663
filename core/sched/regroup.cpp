// Grouping, second look: whole groups.
#include <algorithm>

#include "sched/grouper.h"
#include "sched/outer.h"
#include "sched/profit.h"
#include "sched/tuning.h"

namespace kerf::sched {

using target::BufferIndex;

bool Grouper::has_member(size_t id, size_t step) const {
  const std::vector<Member>& members = result_.groups[id].members;
  return std::any_of(members.begin(), members.end(), [&](const Member& m) { return m.step == step; });
}

int64_t Grouper::bytes(BufferIndex buffer) const {
  return hinted(program_.buffers[buffer].elements, size_facts_) * byte_size(program_.buffers[buffer].dtype);
}

// A value that is cheap to compute again from less data than it has itself is computed in each group that reads it. What no
// group reads from memory any more is then not stored (schedule_program.cpp).
void Grouper::copy_cheap_producers() {
  std::vector<size_t> order(result_.groups.size());
  for (size_t id = 0; id < order.size(); ++id) order[id] = id;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return result_.groups[a].position < result_.groups[b].position; });
  for (size_t id : order) {
    std::vector<BufferIndex> inputs;
    auto add_inputs = [&] {
      for (const Member& member : group(id).members)
        for (BufferIndex buffer : traffic_.steps[member.step].reads)
          if (std::find(inputs.begin(), inputs.end(), buffer) == inputs.end()) inputs.push_back(buffer);
    };
    add_inputs();
    for (size_t i = 0; i < inputs.size(); ++i)
      if (copy_into(id, inputs[i])) add_inputs();
  }
}

// False where nothing was copied.
bool Grouper::copy_into(size_t id, BufferIndex buffer) {
  std::vector<const Member*> copies;  // consumers before producers
  if (!collect_copies(id, buffer, copies) || copies.empty() || !copy_pays(id, buffer, copies)) return false;
  Group merged = group(id);
  for (const Member* member : copies) {
    std::optional<Alignment> alignment = find_alignment(merged, *member->nest, member->step, true);
    if (!alignment) return false;
    accept(merged, std::move(*alignment), member->step).is_copy = true;
  }
  group(id) = std::move(merged);
  return true;
}

// The pointwise members of another group that make `buffer` out of what is in memory when group `id` runs.
bool Grouper::collect_copies(size_t id, BufferIndex buffer, std::vector<const Member*>& copies) const {
  if (traffic_.writers[buffer].size() != 1) return true;
  size_t step = traffic_.writers[buffer][0];
  if (has_member(id, step)) return true;
  if (!result_.group_of[step] || result_.runs_at(step) >= result_.groups[id].position) return true;
  const Group& from = result_.groups[*result_.group_of[step]];
  auto member =
      std::find_if(from.members.begin(), from.members.end(), [&](const Member& m) { return m.step == step; });
  if (member == from.members.end() || member->nest->reduces() || traffic_.returned[buffer]) return true;
  if (program_.buffers[buffer].kind != loop::BufferKind::temp || !reads_are_stable(step)) return true;
  if (static_cast<int64_t>(copies.size()) >= tuning::max_copied_members) return false;
  copies.push_back(&*member);
  // What is small next to the value is read from memory, however it was made.
  constexpr int64_t kSmall = 8;
  for (BufferIndex input : traffic_.steps[step].reads)
    if (kSmall * bytes(input) > bytes(buffer) && !collect_copies(id, input, copies)) return false;
  return true;
}

bool Grouper::copy_pays(size_t id, BufferIndex buffer, const std::vector<const Member*>& copies) const {
  int64_t cost = 0, read = 0;
  for (const Member* copy : copies) {
    for (loop::ValueId value : copy->nest->point_values) cost += cost_of(copy->nest->kernel->values[value]);
    for (BufferIndex input : traffic_.steps[copy->step].reads) {
      bool copied = std::any_of(copies.begin(), copies.end(), [&](const Member* other) {
        return traffic_.writers[input].size() == 1 && traffic_.writers[input][0] == other->step;
      });
      const std::vector<Member>& members = result_.groups[id].members;
      bool read_anyway = std::any_of(members.begin(), members.end(), [&](const Member& m) {
        const std::vector<BufferIndex>& reads = traffic_.steps[m.step].reads;
        return std::find(reads.begin(), reads.end(), input) != reads.end();
      });
      if (!copied && !read_anyway) read += bytes(input);
    }
  }
  // The reader saves reading the value, and its producer writing it once all readers have copies: not where a library
  // call or the caller reads it.
  const std::vector<size_t>& readers = traffic_.readers[buffer];
  bool stays_in_memory =
      traffic_.returned[buffer] ||
      std::any_of(readers.begin(), readers.end(), [&](size_t s) { return !result_.group_of[s].has_value(); });
  int64_t saved = (stays_in_memory ? 1 : 2) * bytes(buffer);
  int64_t domain = 1;
  for (const RootAxis& axis : result_.groups[id].axes)
    domain *= hinted(axis.extent, result_.groups[id].facts);
  bool repeats = hinted(program_.buffers[buffer].elements, size_facts_) < domain;
  return cost <= (repeats ? tuning::repeated_copy_cost : tuning::copy_cost) &&
         read <= saved + bytes(buffer) / 8;
}

// Groups that read the same large input and do not depend on one another become one, the later one running early.
void Grouper::merge_siblings() {
  holders_.resize(program_.steps.size());
  for (size_t id = 0; id < result_.groups.size(); ++id)
    for (const Member& member : result_.groups[id].members) holders_[member.step].push_back(id);
  for (BufferIndex buffer = 0; buffer < traffic_.readers.size(); ++buffer) {
    if (bytes(buffer) < 4 * tuning::min_shared_elements) continue;
    std::vector<size_t> ids = groups_reading(buffer);
    std::sort(ids.begin(), ids.end(),
              [&](size_t a, size_t b) { return result_.groups[a].position < result_.groups[b].position; });
    for (size_t a = 0; a < ids.size(); ++a)
      for (size_t b = a + 1; b < ids.size(); ++b)
        if (!group(ids[a]).members.empty() && !group(ids[b]).members.empty()) merge_into(ids[a], ids[b]);
  }
}

// The groups that read a buffer from memory.
std::vector<size_t> Grouper::groups_reading(BufferIndex buffer) const {
  const std::vector<size_t>& writers = traffic_.writers[buffer];
  std::vector<size_t> ids;
  for (size_t reader : traffic_.readers[buffer])
    for (size_t id : holders_[reader])
      if (!(writers.size() == 1 && has_member(id, writers[0]))) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

bool Grouper::merge_into(size_t id, size_t later) {
  Group& from = group(later);
  if (from.members.size() + group(id).members.size() > static_cast<size_t>(tuning::max_group_members))
    return false;
  for (const Member& member : from.members) {
    if (!reads_are_stable(member.step)) return false;
    for (BufferIndex buffer : traffic_.steps[member.step].reads)
      for (size_t writer : traffic_.writers[buffer])
        if (!has_member(later, writer) && result_.runs_at(writer) >= group(id).position) return false;
  }
  Group merged = group(id);
  for (const Member& member : from.members) {
    auto known = std::find_if(merged.members.begin(), merged.members.end(),
                              [&](const Member& m) { return m.step == member.step; });
    if (known != merged.members.end()) {
      known->is_copy = known->is_copy && member.is_copy;
      continue;
    }
    std::optional<Alignment> alignment = find_alignment(merged, *member.nest, member.step, member.is_copy);
    if (!alignment) return false;
    accept(merged, std::move(*alignment), member.step).is_copy = member.is_copy;
  }
  for (const Member& member : from.members) {
    if (result_.group_of[member.step] == later) result_.group_of[member.step] = id;
    std::vector<size_t>& holders = holders_[member.step];
    std::erase(holders, later);
    if (std::find(holders.begin(), holders.end(), id) == holders.end()) holders.push_back(id);
  }
  from.members.clear();
  group(id) = std::move(merged);
  return true;
}

}  // namespace kerf::sched
