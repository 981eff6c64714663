#pragma once
// Checks a kernel, given as text, against the interpreter: for every size from 0 to `largest`, at several lane counts,
// at both vector widths and with the grid cut up. In the text LANES stands for the lane count and the size is `n`.
#include <string>

#include "../../property/compiled.h"

namespace kerf::testing {

struct Comparison {
  int64_t largest = 70;
  double ulps = 0;
  Fill fill = Fill::special;
};

// Fails the doctest case where results differ.
void check_same_as_interpreter(const std::string& text, const Comparison& comparison = {});

// The same machine without AVX-512.
target::CpuTarget avx2_target();

// The kernel and its data for one size and lane count.
loop::Kernel kernel_of(sym::Context& context, const std::string& text, int lanes);
KernelData data_of(const std::string& text, int64_t n, uint64_t seed, Fill fill);

}  // namespace kerf::testing
