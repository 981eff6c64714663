#pragma once
// Sums over rows beside folds of rows: the gradients of a layer norm's weight and bias next to that of its input.
//
//   rows     dx[r, k] from sums over k of what is read at [r, k]     outer r, inner k
//   columns  dw[k] = sum over r of f(r, k)                           outer k, inner r
//
// Two groups, because neither keeps the axes of the other, read the same memory twice. A column sum in parts of 16 rows
// (split_folds.h) fits into the group of rows: each iteration of a row adds to the part's row of sums, which stays in cache
// (fuse.h). The parts cost a sixteenth of a reading of the domain; the second reading of what the groups share is saved.
#include <optional>

#include "loop/program.h"
#include "sched/group.h"

namespace kerf::sched {

// A program with its groups, whose nests point into it.
struct GroupedColumns {
  std::optional<loop::Program>
      split;  // empty: no sum was split, and the groups are of the program as it came
  Grouping grouping;
};

// Splits the column sums that then join a group of rows; the rest of the program stays as it is. Finding them takes the groups,
// which are given back.
GroupedColumns split_columns(const loop::Program& program, const ColumnLimits& limits);

}  // namespace kerf::sched
