// Random kernels: the interpreter and compiled code give the same bits, at both optimisation levels, at both vector
// widths and with the grid cut into parts.
#include <cstdlib>

#include "../compiled.h"
#include "kernel_data.h"
#include "loop/print.h"
#include "random_kernel.h"

#include <doctest/doctest.h>

using namespace kerf;
using testing::Fill;

namespace {

// KERF_PROPERTY_SEEDS=n runs more of them.
uint64_t seeds(uint64_t standard) {
  const char* wanted = std::getenv("KERF_PROPERTY_SEEDS");
  return wanted ? std::strtoull(wanted, nullptr, 10) : standard;
}

target::CpuTarget narrow_target() {
  target::CpuTarget target = codegen::host_target();
  target.cpu = "x86-64-v3";
  target.features = "+avx2,+fma,+f16c";
  target.vector_bytes = 32;
  return target;
}

// Which of several failures is reported depends on the order of lanes; that there was one does not.
testing::KernelData failed_or_not(testing::KernelData data) {
  if (data.error.code != target::KernelError::kNone) data.error.code = target::KernelError::kIndex;
  return data;
}

void check_same(const loop::Kernel& kernel, uint64_t seed, Fill fill, double ulps) {
  testing::KernelData data = testing::random_data(kernel, seed, fill);
  testing::KernelData expected = failed_or_not(testing::interpreted(kernel, data));
  auto check = [&](const char* how, const testing::CompiledRun& run) {
    INFO(how);
    testing::KernelData actual = failed_or_not(testing::compiled(kernel, data, run));
    REQUIRE_EQ(testing::difference(kernel, expected, actual, ulps).value_or(""), "");
  };
  check("O0", {.level = codegen::OptLevel::O0});
  check("O2", {});
  check("O2, two parts", {.parts = 2});
  check("O2, AVX2", {.target = narrow_target()});
}

// The vector loops of a kernel at another width.
loop::Kernel with_lanes(loop::Kernel kernel, int lanes) {
  for (loop::Axis& axis : kernel.axes) {
    if (axis.role == loop::Role::vector) axis.lanes = lanes;
  }
  return kernel;
}

}  // namespace

TEST_CASE("compiled random kernels give the interpreter's bits") {
  testing::RandomKernelOptions options;
  options.rounding = false;
  for (uint64_t seed = 0; seed < seeds(60); ++seed) {
    sym::Context context;
    loop::Kernel kernel = testing::random_kernel(context, seed, options);
    CAPTURE(seed);
    for (int lanes : {1, 8, 16, 64}) {
      if (lanes != 1 && seed % 3 != static_cast<uint64_t>(lanes) % 3) continue;
      loop::Kernel wide = with_lanes(kernel, lanes);
      CAPTURE(to_text(wide));
      check_same(wide, seed, Fill::special, 0);
    }
  }
}

// Nothing is contracted, reassociated or assumed, so optimising changes no rounding.
TEST_CASE("optimised code rounds as unoptimised code does") {
  for (uint64_t seed = 0; seed < seeds(40); ++seed) {
    sym::Context context;
    loop::Kernel kernel = with_lanes(testing::random_kernel(context, seed), seed % 2 ? 16 : 64);
    CAPTURE(seed);
    CAPTURE(to_text(kernel));
    testing::KernelData data = testing::random_data(kernel, seed, Fill::special);
    testing::KernelData plain = testing::compiled(kernel, data, {.level = codegen::OptLevel::O0});
    testing::KernelData optimised = testing::compiled(kernel, data);
    REQUIRE_EQ(testing::difference(kernel, plain, optimised).value_or(""), "");
  }
}

// Compiled code sums in another order and has functions of its own.
TEST_CASE("compiled random kernels stay within the bounds of rounding") {
  testing::RandomKernelOptions options;
  options.failures = false;
  for (uint64_t seed = 0; seed < seeds(60); ++seed) {
    sym::Context context;
    loop::Kernel kernel = with_lanes(testing::random_kernel(context, seed, options), 16);
    CAPTURE(seed);
    CAPTURE(to_text(kernel));
    testing::KernelData data = testing::random_data(kernel, seed, Fill::exact);
    REQUIRE_EQ(testing::beyond_bounds(kernel, data, testing::compiled(kernel, data)).value_or(""), "");
  }
}
