// Loads and stores: every pattern of lanes, every length of tail, every element type.
#include "same_as_interpreter.h"

#include <doctest/doctest.h>

using namespace kerf;
using testing::check_same_as_interpreter;

TEST_CASE("pointwise loops over all element types") {
  for (const char* dtype : {"f64", "f32", "i64", "i32", "i16", "i8", "u8", "bool"}) {
    CAPTURE(dtype);
    std::string type = dtype;
    check_same_as_interpreter("kernel k(x: " + type + "[n], z: " + type + "[n], out y: " + type +
                              R"([n]) given n
  for i < n vector LANES
    %0 = load x[i]
    %1 = load z[i]
    %2 = minimum %0, %1
    store y[i], %2
)");
  }
}

TEST_CASE("half precision is loaded, computed in f32 and rounded to nearest even") {
  for (const char* dtype : {"bf16", "f16"}) {
    CAPTURE(dtype);
    std::string type = dtype;
    check_same_as_interpreter("kernel k(x: " + type + "[n], c: bool[n], out y: " + type + R"([n]) given n
  for i < n vector LANES
    %0 = load x[i]
    %1 = cast f32 %0
    %2 = mul %1, %1
    %3 = cast )" + type + R"( %2
    %4 = load c[i]
    %5 = where %4, %3, %0
    store y[i], %5
)");
  }
}

TEST_CASE("one element for all lanes, and a scalar for each row") {
  check_same_as_interpreter(R"(kernel k(x: f32[n], w: f32[1], b: f32[5], out y: f32[5, n]) given n
  for r < 5 grid
    for i < n vector LANES
      %0 = load x[i]
      %1 = load w[0]
      %2 = load b[r]
      %3 = mul %0, %1
      %4 = add %3, %2
      store y[n*r + i], %4
)");
}

TEST_CASE("backwards, strided and transposed") {
  check_same_as_interpreter(R"(kernel k(x: f32[3*n], out a: f32[n], out b: f32[n], out c: f32[2, n]) given n
  for i < n vector LANES
    %0 = load x[n - i - 1]
    store a[i], %0
    %1 = load x[3*i + 1]
    store b[n - i - 1], %1
    store c[2*i + 1], %1
    store c[2*i], %0
)");
}

TEST_CASE("digits of the vector axis: uniform, counting and general") {
  check_same_as_interpreter(R"(kernel k(x: f32[128], out y: f32[128*n], out z: f32[128*n]) given n
  for i < 128*n vector LANES
    %0 = load x[i % 128]
    %1 = load x[i // n % 128]
    %2 = load x[(i // 128 + 3) % 7]
    %3 = add %0, %1
    store y[i], %3
    store z[i], %2
)",
                            {.largest = 3});
}

TEST_CASE("gathers by loaded indices") {
  check_same_as_interpreter(R"(kernel k(x: f32[4], j: i64[n], s: i32[n], out y: f32[n], out z: i64[n]) given n
  for i < n vector LANES
    %0 = load j[i]
    %1 = load x[%0]
    store y[i], %1
    %2 = load s[i]
    %3 = load x[3 - %2]
    %4 = cast i64 %3
    store z[i], %4
)",
                            {.fill = testing::Fill::exact});
}

TEST_CASE("masked loads touch memory only where the mask holds") {
  check_same_as_interpreter(R"(kernel k(x: f32[n], m: bool[1], out y: f32[n + 6], out z: f32[n + 6]) given n
  for i < n + 6 vector LANES
    %0 = index i - 3
    %1 = const i64 0
    %2 = index n
    %3 = ge %0, %1
    %4 = lt %0, %2
    %5 = and %3, %4
    %6 = const f32 -1.0
    %7 = load x[i - 3] if %5 else %6
    store y[i], %7
    %8 = load m[0]
    %9 = and %5, %8
    %10 = load x[n - i + 2] if %9 else %7
    store z[i], %10
)");
}

TEST_CASE("all lanes store to one place: the last one stays") {
  check_same_as_interpreter(R"(kernel k(x: f32[n], out y: f32[3], out z: f32[3]) given n
  for r < 3 grid
    %0 = const f32 7.0
    store y[r], %0
    store z[r], %0
    for i < n vector LANES
      %1 = load x[i]
      store y[r], %1
      %2 = const f32 0.0
      %3 = gt %1, %2
      if %3
        store z[r], %1
)");
}

TEST_CASE("sums into shared places: in order, and atomic under a grid") {
  check_same_as_interpreter(
      R"(kernel k(x: f32[n], j: i64[n], inout y: f32[4], inout z: f32[n], inout s: i32[2]) given n
  for i < n vector LANES
    %0 = load x[i]
    %1 = load j[i]
    add y[%1], %0
    add z[n - i - 1], %0
    add z[i], %0
    %2 = const i32 1
    add s[1], %2
)",
      {.fill = testing::Fill::exact});
  check_same_as_interpreter(
      R"(kernel k(x: f32[7, n], j: i64[n], inout y: f32[4], inout z: f32[n], inout s: i32[2]) given n
  for r < 7 grid
    for i < n vector LANES
      %0 = load x[n*r + i]
      %1 = load j[i]
      add y[%1], %0
      add z[n - i - 1], %0
      add z[i], %0
      %2 = const i32 1
      add s[1], %2
)",
      {.fill = testing::Fill::exact});
}

TEST_CASE("sums into f16 and bf16 round after each addition") {
  for (const char* dtype : {"f16", "bf16"}) {
    for (const char* role : {"grid", ""}) {
      CAPTURE(dtype);
      CAPTURE(role);
      std::string type = dtype;
      check_same_as_interpreter("kernel k(x: " + type + "[3, n], inout y: " + type + "[2], inout z: " + type +
                                    "[n]) given n\n  for r < 3 " + role + R"(
    for i < n vector LANES
      %0 = load x[n*r + i]
      add y[1], %0
      add z[i], %0
)",
                                {.fill = testing::Fill::exact});
    }
  }
}

TEST_CASE("stores past the cache, aligned or not") {
  check_same_as_interpreter(R"(kernel k(x: f32[5, n], out non_temporal y: f32[5, n]) given n
  for r < 5 grid
    for i < n vector LANES
      %0 = load x[n*r + i]
      %1 = neg %0
      store y[n*r + i], %1
)",
                            {.largest = 140});
}

TEST_CASE("stores past the cache of half lines: in rows, in columns, in transposed tiles") {
  check_same_as_interpreter(R"(kernel k(x: f32[5, n], out non_temporal y: bf16[5, n]) given n
  for r < 5 grid
    for i < n vector LANES
      %0 = load x[n*r + i]
      %1 = cast bf16 %0
      store y[n*r + i], %1
)",
                            {.largest = 140});
  check_same_as_interpreter(R"(kernel k(x: bf16[40, 64], out non_temporal y: bf16[64, 40])
  for o < 8 grid
    for j < 5
      for a < 8 unrolled
        for b < 8 vector 8
          %0 = load x[64*b + 512*j + a + 8*o]
          store y[8*j + b + 40*a + 320*o], %0
)");
}

TEST_CASE("a transposed tile that no loop is around, of much memory") {
  check_same_as_interpreter(R"(kernel k(x: f32[8, 8192], y: f32[8, 8], out z: f32[8, 8])
  for a < 8 unrolled
    for b < 8 vector 8
      %0 = load x[8192*b + a]
      %1 = load y[8*a + b]
      %2 = add %0, %1
      store z[8*a + b], %2
)");
}

TEST_CASE("divisions by constants within vectors, of both signs") {
  for (const char* divisor : {"3", "5", "6", "7", "10", "56", "641", "65537", "999983", "536870909"}) {
    for (const char* numerator : {"i", "1000003*i + 5", "i - 5000", "999999*i - 499999500", "-1073741*i"}) {
      CAPTURE(divisor);
      CAPTURE(numerator);
      std::string d = divisor, a = numerator;
      check_same_as_interpreter("kernel k(out q: i64[n, 999], out m: i64[n, 999]) given n\n  for r < n\n" +
                                    std::string("    for i < 999 vector LANES\n      %0 = index (") + a +
                                    ") // " + d + "\n      store q[999*r + i], %0\n      %1 = index (" + a +
                                    ") % " + d + "\n      store m[999*r + i], %1\n",
                                {.largest = 1});
    }
  }
}
