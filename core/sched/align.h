#pragma once
// Putting one nest on the axes of a group so that an element of a shared buffer means the same point on both sides.
// Legality only; whether it pays is decided in profit.h.
#include <optional>
#include <vector>

#include "sched/group.h"

namespace kerf::sched {

struct Alignment {
  std::vector<RootAxis> axes;                   // the group's axes afterwards
  std::vector<sym::Substitution> group_change;  // old root axes over the new ones, for members already there
  Member member;                                // the nest on the new axes; step not set
  sym::Facts facts;
  uint32_t next_symbol = 0;
  bool broadcasts = false;  // axes were added that the group did not have
};

// Solves index(nest axes) == position(root axes): `position` is where the group touches the shared buffer, `index` where
// the nest does. Both must be dense, so that every element is touched once on each side (the nest may have further axes
// over which the element is repeated). A copy, which is computed wherever it is read and never stored, may run over some
// of the root axes only; other members use all outer axes, and all inner axes or none.
std::optional<Alignment> align(const Group& group, const Nest& nest, sym::Expr position, sym::Expr index,
                               bool is_copy);

// The group of a single nest on its own axes.
Group seed_group(const Nest& nest, size_t step, const sym::Facts& size_facts);

// Rewrites all members and axes for an alignment that was accepted and adds its member, whose accesses are placed.
Member& accept(Group& group, Alignment alignment, size_t step);

// Finds where a member's accesses are on the root axes.
void place_accesses(Member& member, const sym::Facts& facts);

// An index of a member's nest, over the group's root axes.
sym::Expr on_root(const Member& member, sym::Expr index, const sym::Facts& facts);

}  // namespace kerf::sched
