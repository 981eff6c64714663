#pragma once
// Random valid graphs for property tests of lowering and scheduling: pointwise chains with broadcasting, all views,
// reductions over any dimensions, concatenation, indexed reads, outputs of every kind, dynamic sizes.
//
// Contract
//   * Arithmetic is exact in f64 on the data of `random_input`, so that a result does not depend on the order of a fold.
//   * The same seed gives the same graph on every machine.
#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace kerf::testing {

struct RandomGraphOptions {
  int nodes = 12;
  bool dynamic = false;  // the first dimension of some inputs is a size
  std::vector<int64_t> extents = {1, 2, 3, 4, 6, 8};
};

graph::Graph random_graph(sym::Context& context, uint64_t seed, const RandomGraphOptions& options = {});

// Small integers; for i64 inputs (indices) values in [0, bound).
std::vector<Scalar> random_input(uint64_t seed, DType dtype, int64_t elements, int64_t bound);

}  // namespace kerf::testing
