#pragma once
// A lowered kernel taken apart: one perfect loop nest over kept axes, at most one Reduce, assigning stores. This is the
// form in which kernels are fused; kernels of any other form (scatters, scans, guards) stay as they are.
#include <optional>
#include <vector>

#include "axis/linear.h"
#include "loop/kernel.h"

namespace kerf::sched {

// What a nest reads.
struct NestLoad {
  loop::ValueId value;
  loop::BufferId buffer;
  sym::Expr index;
};

struct Nest {
  const loop::Kernel* kernel = nullptr;
  std::vector<axis::AxisInfo> kept;
  std::vector<axis::AxisInfo> reduced;      // empty: pointwise
  std::vector<loop::ValueId> point_values;  // defined at every point of kept x reduced, in order
  std::vector<loop::Reduction> parts;       // folds over `reduced`
  std::vector<loop::ValueId> kept_values;   // defined after the fold, in order
  std::vector<loop::Store> stores;          // at every point of `kept`
  std::vector<NestLoad> loads;              // among point_values, then among kept_values

  bool reduces() const { return !parts.empty(); }
  std::vector<axis::AxisInfo> all_axes() const;
};

std::optional<Nest> take_apart(const loop::Kernel& kernel);

}  // namespace kerf::sched
