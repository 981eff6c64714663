#pragma once
// Values that are made or read in equal pieces, and nests that walk all pieces at once.
//
// A nest that reads a cat of two halves meets its producers nowhere: they run over half of its axis. Over one half, with its
// body written out for both, every access is of one piece, and each piece is a value of its own:
//
//   for i < 32: c[i] = -x[i + 32]                      for i < 32: c0[i] = -x[i + 32]
//   for i < 32: c[i + 32] = x[i]                 =>    for i < 32: c1[i] = x[i]
//   for i < 64: y[i] = x[i] * a[i] + c[i] * b[i]       for i < 32: y[i] = x[i] * a[i] + c0[i] * b[i]
//                                                                  y[i + 32] = x[i + 32] * a[i + 32] + c1[i] * b[i + 32]
//
// All three are one kernel then, in which nothing is masked. The same goes for slices of a value, and for masks that
// are true on one half (the gradients of slices).
#include <optional>

#include "loop/program.h"
#include "sched/tuning.h"

namespace kerf::sched {

struct PieceLimits {
  int64_t min_block = tuning::min_piece_block;  // elements that lie together in memory
  int64_t max_parts = tuning::max_piece_parts;
};

// Nothing where no value is in such pieces, or where it would not pay: nests around it cannot follow.
std::optional<loop::Program> unroll_pieces(const loop::Program& program, const PieceLimits& limits = {});

}  // namespace kerf::sched
