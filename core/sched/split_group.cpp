#include "sched/split_group.h"

#include <algorithm>
#include <set>
#include <span>

#include "sched/align.h"
#include "sched/fuse.h"
#include "sched/reasons.h"

namespace kerf::sched {

using target::BufferIndex;

namespace {

class Splitter {
 public:
  Splitter(const loop::Program& program, const Group& group, const std::vector<bool>& members_only,
           const Accepts& accepts)
      : program_(program), group_(group), members_only_(members_only), accepts_(accepts) {
    for (const Member& member : group.members) (member.is_copy ? copies_ : own_).push_back(&member);
    std::ranges::stable_sort(own_, {}, &Member::part);
  }

  std::vector<loop::Launch> run() {
    halve(own_);
    return std::move(launches_);
  }

 private:
  using Members = std::span<const Member* const>;

  void halve(Members members) {
    const size_t cut = seam(members);
    const Members halves[] = {members.first(cut), members.subspan(cut)};
    for (Members half : halves)
      if (!half.empty()) place(half);
  }

  // Between groups that are only alike, if there are such.
  static size_t seam(Members members) {
    size_t best = members.size() / 2;
    if (members.front()->part == members.back()->part) return best;
    auto starts_part = [&](size_t i) { return members[i - 1]->part != members[i]->part; };
    for (size_t away = 0;; ++away) {
      if (best > away && starts_part(best - away)) return best - away;
      if (best + away < members.size() && starts_part(best + away)) return best + away;
    }
  }

  void place(Members members) {
    std::vector<const Member*> copies = copies_for(members);
    if (members.size() == 1 && copies.empty()) return add_alone(*members[0]);
    Group part = group_;
    part.members.clear();
    for (const Member* member : members) part.members.push_back(*member);
    for (const Member* copy : copies) part.members.push_back(*copy);
    std::ranges::sort(part.members, {}, &Member::step);
    if (std::ranges::none_of(part.members, &Member::sums_columns))
      for (RootAxis& axis : part.axes) axis.summed = false;
    std::vector<bool> inside = members_only_of(members);
    FusedKernel fused = fuse(program_, part, inside);
    if (fused.kernel.body.empty()) return;
    if (accepts_(fused.kernel)) {
      launches_.push_back(
          {std::move(fused.kernel), std::move(fused.arguments), true, reasons_of(program_, part, inside)});
    } else if (members.size() > 1) {
      halve(members);
    } else {
      for (const Member* copy : copies)
        if (!is_in_memory(*copy)) add_alone(*copy);
      add_alone(*members[0]);
    }
  }

  void add_alone(const Member& member) {
    if (placed_.insert(member.step).second) launches_.push_back(alone(program_, *member.nest, member.step));
  }

  // In program order.
  std::vector<const Member*> copies_for(Members members) const {
    std::set<BufferIndex> needed;
    auto add_reads = [&](const Member& member) {
      for (const NestLoad& load : member.nest->loads) needed.insert(buffer_of(member, load.buffer));
    };
    for (const Member* member : members) add_reads(*member);
    std::vector<const Member*> result;
    for (auto copy = copies_.rbegin(); copy != copies_.rend(); ++copy) {
      if (!std::ranges::any_of(results_of(**copy), [&](BufferIndex b) { return needed.contains(b); }))
        continue;
      result.push_back(*copy);
      add_reads(**copy);
    }
    std::ranges::reverse(result);
    return result;
  }

  // What no other part reads. What copies make never reaches memory.
  std::vector<bool> members_only_of(Members members) const {
    std::vector<bool> inside = members_only_;
    for (const Member& reader : group_.members) {
      if (std::ranges::find(members, reader.step, &Member::step) != members.end()) continue;
      for (const NestLoad& load : reader.nest->loads) inside[buffer_of(reader, load.buffer)] = false;
    }
    return inside;
  }

  // The group that a copy comes from writes it.
  bool is_in_memory(const Member& copy) const {
    return std::ranges::none_of(results_of(copy), [&](BufferIndex b) { return members_only_[b]; });
  }

  BufferIndex buffer_of(const Member& member, loop::BufferId buffer) const {
    return std::get<loop::Launch>(program_.steps[member.step]).arguments[buffer.index];
  }
  std::vector<BufferIndex> results_of(const Member& member) const {
    std::vector<BufferIndex> results;
    for (const loop::Store& store : member.nest->stores) results.push_back(buffer_of(member, store.buffer));
    return results;
  }

  const loop::Program& program_;
  const Group& group_;
  const std::vector<bool>& members_only_;
  const Accepts& accepts_;
  std::vector<const Member*> own_, copies_;
  std::set<size_t> placed_;  // steps that are launches of their own
  std::vector<loop::Launch> launches_;
};

}  // namespace

std::vector<loop::Launch> split_refused(const loop::Program& program, const Group& group,
                                        const std::vector<bool>& members_only, const Accepts& accepts) {
  return Splitter(program, group, members_only, accepts).run();
}

loop::Launch alone(const loop::Program& program, const Nest& nest, size_t step) {
  const std::vector<bool> none_inside(program.buffers.size(), false);
  Group group = seed_group(nest, step, loop::facts_of(program.sizes));
  FusedKernel fused = fuse(program, group, none_inside);
  return {std::move(fused.kernel), std::move(fused.arguments), true, reasons_of(program, group, none_inside)};
}

}  // namespace kerf::sched
