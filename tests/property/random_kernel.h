#pragma once
// Random valid kernels for property tests: all dtypes and ops, reductions with several parts, masked and gathering
// loads, split and triangular loops, dynamic sizes (zero and one among them), local buffers, guards, all roles.
//
// Contract
//   * The kernel verifies, accesses no element outside its buffers whatever the data, and writes each element of
//     an `out` buffer at most once, so that it means the same in any order of its grid loops and vector lanes.
//   * The same seed gives the same kernel on every machine. Its data comes from kernel_data.h.
//   * The sign and payload of NaNs never reach a result.
#include <cstdint>

#include "loop/kernel.h"

namespace kerf::testing {

struct RandomKernelOptions {
  bool roles = true;     // grid, vector and unrolled axes; else all are serial
  bool atomics = true;   // store_add to elements shared by iterations
  bool failures = true;  // ops that may report an error
  // Off: only ops and reductions whose result does not depend on rounding or order, so that every target must agree
  // to the bit. On: also exp and its kind, and floating-point sums and products.
  bool rounding = true;
  int depth = 3;       // loops inside the grid loops
  int statements = 3;  // in each block
};

loop::Kernel random_kernel(sym::Context& context, uint64_t seed, const RandomKernelOptions& options = {});

}  // namespace kerf::testing
