#pragma once
// Random data for a kernel, and running and comparing on it: what every "same numbers" test of kernels shares.
// Same seed, same data, on every machine.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "loop/kernel.h"
#include "target/artifact.h"

namespace kerf::testing {

// exact: floats are multiples of 1/4 in [-4, 4], integers lie in [0, 3]: sums do not depend on their order, and
// few indices are out of bounds. special: also NaN, infinities, -0.0, denormals, extreme values and integers.
enum class Fill { exact, special };

// Values that satisfy the facts, at most `largest` above the smallest allowed.
std::vector<int64_t> random_sizes(const std::vector<loop::Size>& sizes, uint64_t seed, int64_t largest = 20);

void fill_random(void* data, int64_t elements, DType dtype, uint64_t seed, Fill fill);

struct KernelData {
  std::vector<int64_t> sizes;
  std::vector<std::vector<std::byte>> buffers;  // those that are not local, in order; exactly their elements
  target::KernelError error;

  std::vector<void*> pointers();
};

KernelData random_data(const loop::Kernel& kernel, uint64_t seed, Fill fill, int64_t largest_size = 20);

// `data` after the kernel ran over it in the interpreter.
KernelData interpreted(const loop::Kernel& kernel, KernelData data);

// The same, the grid cut into `parts` runs.
KernelData interpreted_in_parts(const loop::Kernel& kernel, KernelData data, int64_t parts);

// Whether two elements agree: all NaNs are equal, 0.0 and -0.0 are not. `ulps`: allowed distance of floats in units in
// the last place of the larger one (of f16 and bf16 too).
bool agree(const Scalar& a, const Scalar& b, double ulps);

// What differs first, or nullopt.
std::optional<std::string> difference(const loop::Kernel& kernel, const KernelData& a, const KernelData& b,
                                      double ulps = 0);

// Which finite float of `actual`, what became of `data` elsewhere, lies further from the interpreter's than its bound
// (loop/rounding.h).
std::optional<std::string> beyond_bounds(const loop::Kernel& kernel, KernelData data,
                                         const KernelData& actual);

}  // namespace kerf::testing
