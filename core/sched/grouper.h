#pragma once
// The state of grouping a program, shared by its stages: group.cpp lets each kernel join a group, regroup.cpp then copies
// cheap producers into the groups that read them and merges groups that share inputs.
//
// Order is kept by positions: everything runs in rising position, and a kernel joins a group early (at the group's
// position) only if all it needs from outside is ready there, or late (the group moves to the kernel's place) only if nobody
// outside has used the group yet.
#include "sched/align.h"
#include "sched/group.h"
#include "sched/traffic.h"

namespace kerf::sched {

class Grouper {
 public:
  Grouper(const loop::Program& program, const ColumnLimits& limits);
  Grouping run();

 private:
  // A buffer that a group and a nest both touch.
  struct Shared {
    target::BufferIndex buffer;
    sym::Expr position;  // where the group does, over its root axes
    sym::Expr index;     // where the nest does, over its axes
    bool stored, nest_stores;
    size_t access;  // among the nest's loads or stores
  };

  // --- group.cpp: one kernel at a time
  void place(size_t step, const Nest& nest);
  bool join(size_t id, size_t step, const Nest& nest);
  void absorb_others(size_t id, size_t step);
  void absorb(size_t id, size_t other);
  void mark_consumed(size_t step);
  std::vector<size_t> producer_groups(size_t step) const;
  std::vector<size_t> sibling_groups(size_t step) const;
  std::optional<uint32_t> common_position(size_t id, size_t step) const;
  std::optional<Alignment> find_alignment(const Group& g, const Nest& nest, size_t step, bool is_copy) const;
  bool meets_unfinished_sum(const Group& g, const Member& member, size_t step) const;

  // --- regroup.cpp: whole groups
  void copy_cheap_producers();
  bool copy_into(size_t id, target::BufferIndex buffer);
  bool collect_copies(size_t id, target::BufferIndex buffer, std::vector<const Member*>& copies) const;
  bool copy_pays(size_t id, target::BufferIndex buffer, const std::vector<const Member*>& copies) const;
  void merge_siblings();
  std::vector<size_t> groups_reading(target::BufferIndex buffer) const;
  bool merge_into(size_t id, size_t later);

  // --- facts
  const loop::Launch& launch(size_t step) const { return std::get<loop::Launch>(program_.steps[step]); }
  Group& group(size_t id) { return result_.groups[id]; }
  bool has_member(size_t id, size_t step) const;
  bool may_be_merged(size_t step) const;
  bool reads_are_stable(size_t step) const;
  int64_t bytes(target::BufferIndex buffer) const;
  std::vector<Shared> shared_touches(const Group& g, const Nest& nest, size_t step) const;

  const loop::Program& program_;
  ColumnLimits limits_;
  Traffic traffic_;
  sym::Facts size_facts_;
  Grouping result_;
  std::vector<std::vector<size_t>>
      holders_;                         // per step, for merge_siblings: the groups that it is a member of
  std::vector<int> outside_consumers_;  // per group: reads of its values by steps outside it, so far
};

}  // namespace kerf::sched
