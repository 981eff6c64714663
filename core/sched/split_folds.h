#pragma once
// Folds with few kept elements and many folded ones become two: parts of the folded domain first, then their results.
//
//   y[k] = fold over r < R of f(r, k)
//   =>  parts[p, k] = fold over c < C of f(C*p + c, k)      p < P is kept, so it is work for threads and lanes
//       y[k]        = fold over p < P of parts[p, k]
//
// Statistics of 16 channels over 200 000 rows, or the sum of a whole tensor, would else run on one thread. The pass stands
// before grouping: the first half is a simple nest like any other, and joins its producers and the other folds of the same
// input; the second half, which is small, joins what consumes the result. It is placed as late as its first reader allows,
// together with the second halves that wait for the same place.
//
// Numbers. Parts of floating-point sums are added in f64, so a part counts like one more block of the fold that it belongs to
// (codegen/llvm/reduce.cpp) and the join adds no error of its own. argmin and argmax pass the part's extremum along with its
// index; the rest folds results as it folds elements.
//
// A sum of squares around another fold's result, as in a variance, has to wait for that result. Where the sum of the same
// elements is split, the parts do not: they are summed around their own means, and the second half moves them
// (fold_halves.cpp has the identity, which is exact for any m). Both passes over a part are then in one kernel.
//
// Only exact cuts are made: of the folded axes, outermost in memory first, whole axes (of any size, known or not) and a divisor
// of the next. A masked tail would keep the parts off the axes of the producers, which costs more than the cut gains.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "loop/program.h"
#include "sched/nest.h"
#include "sched/tuning.h"

namespace kerf::sched {

// When to split. Of the target; these are the CPU's. Tests set other limits to reach small programs.
struct SplitLimits {
  int64_t min_elements = tuning::split_fold_elements;
  int64_t min_step_elements = 1;  // of each grid step that the fold has whole
  int64_t busy_steps = tuning::min_parallel_rows;
  int64_t wanted_steps = tuning::split_fold_steps;
  int64_t part_elements = tuning::split_fold_part;
  int64_t min_chunk = tuning::split_fold_chunk;
};

// One folded axis cut in two: extent = parts * chunk.
struct Piece {
  sym::Expr parts;
  sym::Expr chunk;
};

// Profit: how to cut each folded axis of a nest, or nothing where the fold is better left whole.
std::optional<std::vector<Piece>> choose_parts(const Nest& nest, const sym::Facts& size_facts,
                                               const SplitLimits& limits);

loop::Program split_folds(const loop::Program& program, const SplitLimits& limits = {});

// --- for other reasons to split (columns.h)

// How to cut the fold that the launch `step` is.
using ChooseParts = std::function<std::optional<std::vector<Piece>>(size_t step, const Nest& nest)>;
// `late`: the parts are computed in the place of the second half too. `suffix` ends the names of kernels and buffers of parts.
loop::Program split_folds(const loop::Program& program, const ChooseParts& choose, bool late,
                          const std::string& suffix);

// The name of the kernel that computes a fold's parts.
std::string parts_name(const Nest& nest, const std::string& suffix);

// The folded axes, those with the longest stride in memory first.
std::vector<size_t> memory_order(const Nest& nest, const sym::Facts& size_facts);

// Constant chunks into which an axis can be cut exactly, 1 included.
std::vector<int64_t> chunks_of(sym::Expr extent, const sym::Facts& size_facts);

}  // namespace kerf::sched
