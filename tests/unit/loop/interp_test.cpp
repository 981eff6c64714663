// What each statement means, on values chosen by hand.
#include "loop/interp.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "loop/parse.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::loop;

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

target::KernelError run(const char* text, std::vector<int64_t> sizes, std::vector<void*> buffers,
                        std::optional<GridRange> grid = std::nullopt) {
  sym::Context context;
  target::KernelError error;
  interpret(parse_kernel(text, context), sizes, buffers, error, grid);
  return error;
}

// Reduces x with max, sum and argmax.
struct Folded {
  float max;
  float sum;
  int64_t argmax;
};

Folded fold(std::vector<float> x) {
  Folded result{};
  run(R"(kernel k(x: f32[n], out m: f32[], out s: f32[], out a: i64[]) given n
  %2, %3, %4 = reduce max, sum, argmax for j < n
    %0 = load x[j]
    %1 = index j
    yield %0, %0, (%0, %1)
  store m[0], %2
  store s[0], %3
  store a[0], %4
)",
      {static_cast<int64_t>(x.size())}, {x.data(), &result.max, &result.sum, &result.argmax});
  return result;
}

}  // namespace

TEST_CASE("folds: order, identities of the empty fold, NaN, first of equals") {
  CHECK_EQ(fold({1, 5, 5, 2}).max, 5);
  CHECK_EQ(fold({1, 5, 5, 2}).argmax, 1);
  CHECK_EQ(fold({1e8f, 1, -1e8f, 1}).sum, 2);  // rounded once, at the end
  CHECK_EQ(fold({}).max, -kInf);
  CHECK_EQ(fold({}).sum, 0);
  CHECK_EQ(fold({}).argmax, std::numeric_limits<int64_t>::max());
  CHECK(std::isnan(fold({1, kNaN, 7}).max));
  CHECK_EQ(fold({1, kNaN, 7, kNaN}).argmax, 1);
  CHECK_EQ(fold({-kInf, -kInf}).argmax, 0);
  CHECK(std::isnan(fold({kInf, -kInf}).sum));
}

TEST_CASE("a masked load does not touch memory where the mask is false") {
  std::vector<float> x{1, 2, 3};
  std::vector<float> y(5);
  run(R"(kernel k(x: f32[3], out y: f32[5])
  %0 = const i64 3
  %1 = const f32 -1.0
  for i < 5
    %2 = index i
    %3 = lt %2, %0
    %4 = load x[i] if %3 else %1
    store y[i], %4
)",
      {}, {x.data(), y.data()});
  CHECK_EQ(y, std::vector<float>{1, 2, 3, -1, -1});
}

TEST_CASE("store_add accumulates; bf16 rounds each sum once") {
  uint16_t total = bf16_bits(256);
  float plain = 0;
  run(R"(kernel k(inout b: bf16[], inout f: f32[])
  %0 = const bf16 1.0
  %1 = const f32 0.5
  for i < 4
    add b[0], %0
    add f[0], %1
)",
      {}, {&total, &plain});
  CHECK_EQ(total, bf16_bits(256));  // 257 is a tie and goes to even, each time
  CHECK_EQ(plain, 2);
}

TEST_CASE("split loops, guards and gathers") {
  std::vector<int64_t> index{2, 0, 1, 4, 3};
  std::vector<float> x{10, 11, 12, 13, 14};
  std::vector<float> y(5, -1);
  run(R"(kernel k(ix: i64[n], x: f32[n], inout y: f32[n]) given n in [1, 100]
  %0 = index n
  %1 = const f32 12.0
  for o < (n + 1) // 2
    for p < min(2, n - 2*o)
      %2 = load ix[2*o + p]
      %3 = check_index %2, %0
      %4 = load x[%3]
      %5 = ne %4, %1
      if %5
        store y[2*o + p], %4
)",
      {5}, {index.data(), x.data(), y.data()});
  CHECK_EQ(y, std::vector<float>{-1, 10, 11, 14, 13});
}

TEST_CASE("failures: the first is reported, the kernel goes on with 0") {
  std::vector<int64_t> index{1, 7, -1};
  std::vector<float> x{10, 11, 12};
  std::vector<float> y(3);
  const char* text = R"(kernel k(ix: i64[3], x: f32[3], out y: f32[3])
  %0 = const i64 3
  for i < 3
    %1 = load ix[i]
    %2 = check_index %1, %0
    %3 = load x[%2]
    store y[i], %3
)";
  target::KernelError error = run(text, {}, {index.data(), x.data(), y.data()});
  CHECK_EQ(y, std::vector<float>{11, 10, 10});
  CHECK_EQ(error.code, target::KernelError::kIndex);
  CHECK_EQ(error.index, 7);
  CHECK_EQ(error.bound, 3);
  CHECK_EQ(error.value, 2);
  index = {0, 1, 2};
  CHECK_EQ(run(text, {}, {index.data(), x.data(), y.data()}).code, target::KernelError::kNone);

  int32_t quotient = 5;
  error = run(R"(kernel k(out q: i32[])
  %0 = const i32 7
  %1 = const i32 0
  %2 = floor_div %0, %1
  store q[0], %2
)",
              {}, {&quotient});
  CHECK_EQ(error.code, target::KernelError::kDivision);
  CHECK_EQ(quotient, 0);
}

TEST_CASE("part of the grid: flattened, innermost fastest; locals start afresh") {
  std::vector<float> y(6, 0);
  const char* text = R"(kernel k(inout y: f32[6])
  for i < 2 grid
    for j < 3 grid
      %0 = const f32 1.0
      add y[3*i + j], %0
)";
  run(text, {}, {y.data()}, GridRange{2, 5});
  CHECK_EQ(y, std::vector<float>{0, 0, 1, 1, 1, 0});
  CHECK_THROWS_AS(run(text, {}, {y.data()}, GridRange{2, 7}), InternalError);

  std::vector<float> z(2, 0);
  run(R"(kernel k(out z: f32[2], local t: f32[2])
  for i < 2 grid
    %0 = const f32 1.0
    store t[i], %0
    %1 = load t[0]
    store z[i], %1
)",
      {}, {z.data()});
  CHECK_EQ(z[0], 1);
  CHECK(std::isnan(z[1]));  // the 1 of the first iteration is gone
}

TEST_CASE("an access outside its buffer names kernel, access and index") {
  float x = 1;
  CHECK_THROWS_WITH_AS(
      run(R"(kernel shift(x: f32[n], inout y: f32[n]) given n
  for i < n
    %0 = load x[i + 3*(i // n) + 1]
    store y[i], %0
)",
          {1}, {&x, &x}),
      doctest::Contains("kernel shift: index 1 outside the 1 elements of x, in: %0 = load x["),
      InternalError);
  CHECK_THROWS_AS(run("kernel k(x: f32[n]) given n\n", {}, {&x}), InternalError);
  CHECK_THROWS_AS(run("kernel k(x: f32[n]) given n\n", {1}, {}), InternalError);
}
