#pragma once
// The scheduler as a whole: Program in, Program out, with merged kernels on canonical axes, scheduled for the target.
#include "loop/program.h"
#include "sched/group.h"
#include "sched/join_alike.h"
#include "sched/split_folds.h"
#include "sched/split_group.h"
#include "sched/unroll_pieces.h"
#include "target/cpu.h"

namespace kerf::sched {

// Of the target; these are the CPU's, but for alike groups, which it keeps apart (driver/compile.cpp). Tests set others to
// reach small programs.
struct FuseLimits {
  PieceLimits pieces;
  ColumnLimits columns;
  AlikeLimits alike;
};
struct Limits {
  SplitLimits split;
  FuseLimits fuse;
};

// Merges kernels (group.h, fuse.h), pieces of one value among them (unroll_pieces.h), column sums with the rows beside them
// (columns.h), and what has the same axes (join_alike.h). Steps are put in their new order;
// temporaries nobody reads any more stay in the table, unused.
// `accepts`, where given, is asked of each merged kernel; where the target has no code for it, it is split
// (split_group.h).
loop::Program fuse_kernels(const loop::Program& program, const FuseLimits& limits = {},
                           const Accepts& accepts = {});

// Chooses and applies a schedule for every launch.
loop::Program schedule_kernels(const loop::Program& program, const target::CpuTarget& target);

}  // namespace kerf::sched
