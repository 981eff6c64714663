#include "sched/profit.h"

#include <algorithm>

#include "sched/tuning.h"
#include "sym/eval.h"
#include "sym/simplify.h"

namespace kerf::sched {

using sym::Expr;

namespace {

struct Extents {
  int64_t outer = 1;
  int64_t inner = 1;
};

Extents extents_of(const std::vector<RootAxis>& axes, const sym::Facts& facts) {
  Extents extents;
  for (const RootAxis& axis : axes)
    (axis.inner ? extents.inner : extents.outer) *= hinted(axis.extent, facts);
  return extents;
}

// Whether an index over the root axes runs along memory in an inner one.
bool runs_along_rows(const Alignment& alignment, Expr index) {
  return std::any_of(alignment.axes.begin(), alignment.axes.end(), [&](const RootAxis& axis) {
    if (!axis.inner) return false;
    auto stride = axis::stride_over(index, axis.symbol);
    return stride && stride->is_constant(1);
  });
}

bool stores_along_rows(const Alignment& alignment) {
  const Member& member = alignment.member;
  return std::any_of(member.nest->stores.begin(), member.nest->stores.end(), [&](const loop::Store& store) {
    return runs_along_rows(alignment, on_root(member, store.index, alignment.facts));
  });
}

}  // namespace

int64_t hinted(Expr expr, const sym::Facts& facts) {
  constexpr int64_t kSizeHint = 64;
  std::vector<Expr> symbols;
  sym::collect_symbols(expr, symbols);
  auto value_of = [&](const sym::Symbol& symbol) {
    for (Expr s : symbols) {
      if (&s.symbol() != &symbol) continue;
      sym::Range range = facts.range(s);
      int64_t value = kSizeHint;
      if (range.lo) value = std::max(value, *range.lo);
      if (range.hi) value = std::min(value, *range.hi);
      return value;
    }
    return kSizeHint;
  };
  return sym::evaluate(expr, value_of).value_or(kSizeHint);
}

bool join_pays(const Group& group, const Alignment& alignment, Expr position) {
  if (static_cast<int64_t>(group.members.size()) >= tuning::max_group_members) return false;
  if (alignment.broadcasts && !alignment.member.nest->reduces() && !stores_along_rows(alignment))
    return false;
  Extents before = extents_of(group.axes, group.facts), after = extents_of(alignment.axes, alignment.facts);
  if (after.outer >= before.outer) return true;
  if (after.outer * after.inner <= tuning::small_group_elements) return true;
  // Outer axes became rows. Where the rows run along memory, each is a vector loop and a grid step; where they run across
  // it, the lanes come from the outer axes and only the rest is left for threads.
  Expr index = sym::simplify(sym::substitute(position, alignment.group_change), alignment.facts);
  constexpr int64_t kLanes = 16;
  int64_t steps = runs_along_rows(alignment, index) ? after.outer : after.outer / kLanes;
  return steps >= tuning::min_parallel_rows;
}

bool columns_pay(const Alignment& alignment, int64_t min_steps) {
  int64_t steps = 1;
  for (const RootAxis& axis : alignment.axes)
    if (!axis.inner && !axis.summed) steps *= hinted(axis.extent, alignment.facts);
  return steps >= min_steps;
}

}  // namespace kerf::sched
