#pragma once
// The meaning of a kernel, executed: slow, obvious, every access checked. The oracle of all tests, and what runs
// kernels in builds without LLVM.
//
//   * Loops run in order whatever their role. Sums fold in that order, starting from the identity.
//   * An access outside its buffer is a bug of the compiler: InternalError naming kernel, statement and index.
//   * Operations that may fail report the first failure in `error` and go on with 0.
//   * Local buffers are filled with 0xff bytes (NaN, -1) at the start of each grid iteration.
//   * store_add into f16 and bf16 adds in f32 and rounds.
#include <cstdint>
#include <optional>
#include <span>

#include "loop/kernel.h"
#include "target/artifact.h"

namespace kerf::loop {

// Part of the flattened grid, the innermost grid loop varying fastest.
struct GridRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// sizes: values of Kernel::sizes in order. buffers: data of the buffers that are not local, in order; each
// holds at least element_count elements. grid: all of it when absent. bounds: empty, or per buffer null (exact) or
// an element each: how far a target's number may lie from this one (rounding.h); read and written as the data are.
void interpret(const Kernel& kernel, std::span<const int64_t> sizes, std::span<void* const> buffers,
               target::KernelError& error, std::optional<GridRange> grid = std::nullopt,
               std::span<double* const> bounds = {});

}  // namespace kerf::loop
