// Random kernels: valid, the same after a round trip through text, and the same in meaning after each rewrite of
// core/loop.
#include "kernel_data.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/renumber.h"
#include "loop/verify.h"
#include "random_kernel.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::loop;

namespace {

constexpr uint64_t kKernels = 400;

template <class Check>
void for_random_kernels(Check check) {
  for (uint64_t seed = 0; seed < kKernels; ++seed) {
    sym::Context context;
    Kernel kernel = testing::random_kernel(context, seed);
    CAPTURE(seed);
    CAPTURE(to_text(kernel));
    check(kernel, seed);
  }
}

// Nothing where the two kernels give the same bits.
std::string disagreement(const Kernel& a, const Kernel& b, uint64_t seed, testing::Fill fill) {
  testing::KernelData data = testing::random_data(a, seed, fill);
  return testing::difference(a, testing::interpreted(a, data), testing::interpreted(b, data)).value_or("");
}

}  // namespace

TEST_CASE("random kernels are valid and run in bounds") {
  for_random_kernels([](const Kernel& kernel, uint64_t seed) {
    REQUIRE_EQ(fmt::format("{}", fmt::join(verify(kernel), "\n")), "");
    testing::interpreted(kernel, testing::random_data(kernel, seed, testing::Fill::special));
  });
}

TEST_CASE("printing, parsing and printing again gives the same text and numbers") {
  for_random_kernels([](const Kernel& kernel, uint64_t seed) {
    std::string text = to_text(kernel);
    Kernel parsed = parse_kernel(text, *kernel.context);
    REQUIRE_EQ(to_text(parsed), text);
    REQUIRE_EQ(disagreement(kernel, parsed, seed, testing::Fill::special), "");
  });
}

TEST_CASE("a parsed kernel is the printed one, field by field") {
  for_random_kernels([](const Kernel& kernel, uint64_t) {
    Kernel parsed = parse_kernel(to_text(kernel), *kernel.context);
    REQUIRE_EQ(parsed.values.size(), kernel.values.size());
    for (ValueId id(0); id.index < kernel.values.size(); ++id.index) {
      const Value& a = kernel.values[id];
      const Value& b = parsed.values[id];
      CAPTURE(id.index);
      REQUIRE(a.kind == b.kind);
      REQUIRE(a.dtype == b.dtype);
      REQUIRE(a.operands == b.operands);
      REQUIRE(a.index == b.index);  // one context: the same expression is the same handle
      if (a.kind == ValueKind::apply) REQUIRE(a.op == b.op);
      if (a.kind == ValueKind::constant) REQUIRE(a.literal == b.literal);
      if (a.kind == ValueKind::load) REQUIRE(a.buffer == b.buffer);
    }
    for (BufferId id(0); id.index < kernel.buffers.size(); ++id.index) {
      REQUIRE(parsed.buffers[id].mode == kernel.buffers[id].mode);
      REQUIRE(parsed.buffers[id].shape == kernel.buffers[id].shape);
    }
  });
}

TEST_CASE("renumbering and removing dead values keep the numbers, and repeat to the same text") {
  for_random_kernels([](const Kernel& kernel, uint64_t seed) {
    Kernel live = remove_dead_values(kernel);
    REQUIRE_EQ(fmt::format("{}", fmt::join(verify(live), "\n")), "");
    REQUIRE_EQ(disagreement(kernel, live, seed, testing::Fill::special), "");
    REQUIRE_EQ(to_text(remove_dead_values(live)), to_text(live));
    REQUIRE_EQ(to_text(renumber(kernel)), to_text(kernel));
  });
}

TEST_CASE("canonical text does not depend on names, and reads as a kernel of the same meaning") {
  for_random_kernels([](const Kernel& kernel, uint64_t seed) {
    std::string text = canonical_text(kernel);
    sym::Context other;
    Kernel parsed = parse_kernel(text, other);
    REQUIRE_EQ(canonical_text(parsed), text);
    REQUIRE_EQ(disagreement(kernel, parsed, seed, testing::Fill::special), "");
  });
}

TEST_CASE("a grid run in parts gives what one run gives") {
  for_random_kernels([](const Kernel& kernel, uint64_t seed) {
    testing::KernelData data = testing::random_data(kernel, seed, testing::Fill::special);
    testing::KernelData whole = testing::interpreted(kernel, data);
    testing::KernelData parts = testing::interpreted_in_parts(kernel, data, 3);
    REQUIRE_EQ(testing::difference(kernel, whole, parts).value_or(""), "");
  });
}
