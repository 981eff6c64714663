// How far other roundings and orders may lead: bounds that hold, and that are no looser than they need be.
#include "loop/rounding.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "loop/interp.h"
#include "loop/parse.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::loop;

namespace {

struct Bounded {
  std::vector<float> values;
  std::vector<double> bounds;
};

// Of the kernel's last buffer; x is its first.
Bounded run(const char* text, std::vector<float> x, size_t elements) {
  sym::Context context;
  target::KernelError error;
  Bounded result{std::vector<float>(elements), std::vector<double>(elements)};
  std::vector<void*> buffers{x.data(), result.values.data()};
  std::vector<double*> bounds{nullptr, result.bounds.data()};
  interpret(parse_kernel(text, context), std::vector{static_cast<int64_t>(x.size())}, buffers, error,
            std::nullopt, bounds);
  return result;
}

const char* const kSumOfDeviations = R"(kernel k(x: f32[n], out y: f32[1]) given n in [1, 10000]
  %0 = index n
  %1 = cast f32 %0
  %3 = reduce sum for i < n
    %2 = load x[i]
    yield %2
  %4 = div %3, %1
  %7 = reduce sum for j < n
    %5 = load x[j]
    %6 = sub %5, %4
    yield %6
  store y[0], %7
)";

}  // namespace

TEST_CASE("deviations from a mean: other orders stay within the bound, which is not far above them") {
  std::mt19937 random(1);
  for (size_t n : {2u, 33u, 392u, 5000u}) {
    double worst = 0, bound = 0;
    for (int round = 0; round < 20; ++round) {
      std::vector<float> x(n);
      for (float& element : x) element = static_cast<float>(random()) * 0x1p-30f - 2;
      Bounded expected = run(kSumOfDeviations, x, 1);
      bound = std::max(bound, expected.bounds[0]);
      for (bool backwards : {false, true}) {
        float sum = 0, deviations = 0;
        for (size_t i = 0; i < n; ++i) sum += x[backwards ? n - 1 - i : i];
        float mean = sum / static_cast<float>(n);
        for (size_t i = 0; i < n; ++i) deviations += x[backwards ? n - 1 - i : i] - mean;
        double off = std::abs(static_cast<double>(deviations) - expected.values[0]);
        CHECK_LE(off, expected.bounds[0]);
        worst = std::max(worst, off);
      }
    }
    if (n > 2) CHECK_LE(bound, 60 * worst);
  }
}

TEST_CASE("a small difference of large numbers is uncertain; what is only moved is exact") {
  const char* text = R"(kernel k(x: f32[n], out y: f32[4]) given n in [3, 3]
  %0 = load x[0]
  %1 = load x[1]
  %2 = load x[2]
  %3 = mul %0, %1
  %4 = sub %3, %2
  %5 = rsqrt %4
  %6 = neg %0
  %7 = maximum %6, %1
  %8 = lt %4, %1
  %9 = where %8, %0, %1
  store y[0], %5
  store y[1], %4
  store y[2], %7
  store y[3], %9
)";
  const float x = 1.0f + 0x1p-12f;
  Bounded result = run(text, {x, x, 1.0f}, 4);
  CHECK_GE(result.bounds[1], 0x1p-24);  // fused: x * x is not rounded
  CHECK_LE(result.bounds[1], 0x1p-22);
  CHECK_EQ(result.bounds[2], 0);
  CHECK_EQ(result.bounds[3], 0);  // far from its condition's edge
  double difference = result.values[1];
  CHECK_GE(result.bounds[0], 0.5 * std::pow(difference, -1.5) * result.bounds[1]);
  CHECK_LE(result.bounds[0], std::pow(difference, -1.5) * result.bounds[1]);
  // On the edge either may be chosen.
  result = run(text, {2.0f, 3.0f, 3.0f}, 4);
  CHECK_EQ(result.bounds[3], 1);
}

TEST_CASE(
    "casts round alike; folds of extrema pass their largest bound on; nothing is known where a root may be "
    "of less than 0") {
  const char* text = R"(kernel k(x: f32[n], out y: f32[3]) given n in [2, 2]
  %0 = load x[0]
  %1 = cast bf16 %0
  %2 = cast f32 %1
  store y[0], %2
  %5 = reduce max for i < n
    %3 = load x[i]
    %4 = mul %3, %3
    yield %4
  store y[1], %5
  %6 = mul %0, %0
  %7 = sub %6, %5
  %8 = sqrt %7
  store y[2], %8
)";
  Bounded result = run(text, {3.3f, 1.0f}, 3);
  CHECK_EQ(result.bounds[0], 0);
  CHECK_EQ(result.bounds[1], doctest::Approx(3.3 * 3.3 * 0x1p-23));
  CHECK_EQ(result.bounds[2], std::numeric_limits<double>::infinity());
}
