#pragma once
// Whether a legal fusion pays. Never decides legality.
#include "sched/align.h"
#include "sched/group.h"

namespace kerf::sched {

// The value an expression over sizes is taken to have when decisions need a number: the constant, or with every size at
// 64 (clamped into its range).
int64_t hinted(sym::Expr expr, const sym::Facts& facts);

// Joining `alignment` to `group` through a buffer that the group touches at `position` (over the group's old axes).
bool join_pays(const Group& group, const Alignment& alignment, sym::Expr position);

// Summing columns over a group's rows leaves enough grid steps.
bool columns_pay(const Alignment& alignment, int64_t min_steps);

}  // namespace kerf::sched
