#pragma once
// Recognizes folds that follow a fold of the same elements: sum over r of (x[r, k] - m[k])^2, as variances are written. Kernels
// are still one operation each here, so the pattern is looked for through the temporaries between them.
#include <optional>

#include "loop/program.h"
#include "sched/nest.h"
#include "sched/traffic.h"

namespace kerf::sched {

// A load, its index over the axes of the fold in question.
struct Element {
  target::BufferIndex buffer = target::kNoBuffer;
  sym::Expr index;
  friend bool operator==(const Element&, const Element&) = default;
};

struct Squares {
  Element value;   // x
  Element around;  // m: its index mentions kept axes only
};

// `fold`, the nest of the launch `step`, as a sum of squares.
std::optional<Squares> squares_of(const loop::Program& program, const Traffic& traffic, size_t step,
                                  const Nest& fold, const sym::Facts& size_facts);

// What a sum folds, if that is just what it loads.
std::optional<Element> summand_of(const loop::Program& program, size_t step, const Nest& fold);

}  // namespace kerf::sched
