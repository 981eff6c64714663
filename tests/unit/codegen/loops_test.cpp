// Loops, reductions, guards and local memory.
#include "same_as_interpreter.h"

#include <doctest/doctest.h>

using namespace kerf;
using testing::check_same_as_interpreter;

TEST_CASE("a row reduction in vectors, of every kind") {
  check_same_as_interpreter(
      R"(kernel k(x: f32[3, n], out s: f32[3], out p: f32[3], out a: f32[3], out b: f32[3]) given n
  for r < 3 grid
    %2, %3, %4, %5 = reduce sum, prod, min, max for i < n vector LANES
      %0 = load x[n*r + i]
      %1 = sign %0
      yield %0, %1, %0, %0
    store s[r], %2
    store p[r], %3
    store a[r], %4
    store b[r], %5
)",
      {.fill = testing::Fill::exact});
}

TEST_CASE("extrema of special values: NaN wins, -0.0 lies below 0.0") {
  check_same_as_interpreter(
      R"(kernel k(x: f32[n], y: i8[n], z: u8[n], w: bool[n], out a: f32[2], out b: i8[2], out c: u8[2], out d: bool[2]) given n
  %8, %9, %10, %11, %12, %13, %14, %15 = reduce min, max, min, max, min, max, any, all for i < n vector LANES
    %0 = load x[i]
    %1 = load y[i]
    %2 = load z[i]
    %3 = load w[i]
    yield %0, %0, %1, %1, %2, %2, %3, %3
  store a[0], %8
  store a[1], %9
  store b[0], %10
  store b[1], %11
  store c[0], %12
  store c[1], %13
  store d[0], %14
  store d[1], %15
)");
}

TEST_CASE("the index of an extremum: lowest of equals, first NaN") {
  for (const char* dtype : {"f32", "f64", "i32", "u8"}) {
    CAPTURE(dtype);
    std::string text = "kernel k(x: " + std::string(dtype) + R"([n], out a: i64[1], out b: i64[1]) given n
  %2, %3 = reduce argmin, argmax for i < n vector LANES
    %0 = load x[i]
    %1 = index i
    yield (%0, %1), (%0, %1)
  store a[0], %2
  store b[0], %3
)";
    check_same_as_interpreter(text, {.fill = testing::Fill::exact});
    check_same_as_interpreter(text);
  }
}

TEST_CASE("a column reduction: serial folds inside a vector loop") {
  check_same_as_interpreter(R"(kernel k(x: f32[9, n], out y: f32[n], out z: i64[n]) given n
  for i < n vector LANES
    %2, %3 = reduce sum, argmax for r < 9
      %0 = load x[n*r + i]
      %1 = index r
      yield %0, (%0, %1)
    store y[i], %2
    store z[i], %3
)",
                            {.fill = testing::Fill::exact});
}

TEST_CASE("reductions over several axes, the vector one inside or outside") {
  check_same_as_interpreter(R"(kernel k(x: f32[5, n], out y: f32[2]) given n
  %1 = reduce sum for r < 5, i < n vector LANES
    %0 = load x[n*r + i]
    yield %0
  store y[0], %1
  %3 = reduce max for j < n vector LANES, q < 5
    %2 = load x[n*q + j]
    yield %2
  store y[1], %3
)",
                            {.fill = testing::Fill::exact});
}

TEST_CASE("long folds run in blocks: along the vector axis, across it, and over several axes") {
  for (const char* extent : {"129", "200", "641", "64*n", "7*n + 1"}) {
    CAPTURE(extent);
    std::string e = extent;
    check_same_as_interpreter("kernel k(x: f32[" + e +
                                  ", 3, n], out y: f32[n], out z: i64[n], out s: f32[1]) given n" +
                                  R"(
  for i < n vector LANES
    %2, %3 = reduce sum, argmax for r < )" +
                                  e + R"(, q < 3
      %0 = load x[3*n*r + n*q + i]
      %1 = index 3*r + q
      yield %0, (%0, %1)
    store y[i], %2
    store z[i], %3
  %6 = reduce sum for k < )" + "3*n*(" +
                                  e + R"() vector LANES
    %5 = load x[k]
    yield %5
  store s[0], %6
)",
                              {.largest = 9, .fill = testing::Fill::exact});
  }
}

TEST_CASE("a long sum of infinities or NaN is what the additions give") {
  check_same_as_interpreter(R"(kernel k(x: f32[300, n], out y: f32[n]) given n
  for i < n vector LANES
    %1 = reduce sum for r < 300
      %0 = load x[n*r + i]
      %2 = load x[i]
      %3 = mul %2, %2
      yield %3
    store y[i], %1
)",
                            {.ulps = 64});
}

TEST_CASE("a softmax row: three loops that share scalars") {
  check_same_as_interpreter(R"(kernel k(x: f32[4, n], out y: f32[4, n]) given n
  for r < 4 grid
    %1 = reduce max for i < n vector LANES
      %0 = load x[n*r + i]
      yield %0
    %5 = reduce sum for j < n vector LANES
      %2 = load x[n*r + j]
      %3 = sub %2, %1
      %4 = exp %3
      yield %4
    for k < n vector LANES
      %6 = load x[n*r + k]
      %7 = sub %6, %1
      %8 = exp %7
      %9 = div %8, %5
      store y[n*r + k], %9
)",
                            {.ulps = 12, .fill = testing::Fill::exact});
}

TEST_CASE("split loops, and extents that depend on outer axes") {
  check_same_as_interpreter(R"(kernel k(x: f32[n], out y: f32[n], out z: f32[n]) given n
  for o < (n + 23) // 24 grid
    for i < min(24, n - 24*o) vector LANES
      %0 = load x[24*o + i]
      store y[24*o + i], %0
    for j < min(24, n - 24*o) unrolled
      %1 = load x[24*o + j]
      store z[24*o + j], %1
)");
}

TEST_CASE("constant extents: below, at and above the lanes") {
  for (int extent : {1, 3, 16, 40, 64, 65, 200}) {
    CAPTURE(extent);
    std::string e = std::to_string(extent);
    check_same_as_interpreter("kernel k(x: f32[" + e + ", n], out y: f32[" + e +
                                  ", n], out s: f32[n]) given n\n" + "  for r < n grid\n    for i < " + e +
                                  R"( vector LANES
      %0 = load x[n*i + r]
      store y[n*i + r], %0
    %2 = reduce sum for j < )" + e +
                                  R"( vector LANES
      %1 = load x[n*j + r]
      yield %1
    store s[r], %2
)",
                              {.largest = 2, .fill = testing::Fill::exact});
  }
}

TEST_CASE("guards: uniform ones branch, others mask what is inside") {
  check_same_as_interpreter(
      R"(kernel k(x: f32[n], j: i64[n], t: f32[4], c: bool[1], inout y: f32[n], inout z: f32[n]) given n
  for i < n vector LANES
    %0 = load x[i]
    %1 = const f32 0.0
    %2 = gt %0, %1
    %3 = load c[0]
    if %3
      store z[i], %0
    if %2
      %4 = load j[i]
      %5 = load t[%4]
      %7 = reduce sum for q < 3
        %6 = load t[q]
        yield %6
      %8 = mul %5, %7
      store y[i], %8
      %9 = const f32 1.0
      %10 = lt %0, %9
      if %10
        store z[i], %5
)",
      {.fill = testing::Fill::exact});
}

TEST_CASE("local buffers, on the stack and in scratch memory") {
  for (const char* elements : {"80", "5000"}) {
    CAPTURE(elements);
    check_same_as_interpreter("kernel k(x: f32[3, n], local a: f32[" + std::string(elements) +
                              "], local b: f64[" + elements + R"(], out y: f32[3, n]) given n
  for r < 3 grid
    for i < n vector LANES
      %0 = load x[n*r + i]
      %1 = cast f64 %0
      store a[i], %0
      store b[n - i - 1], %1
    for k < n vector LANES
      %2 = load a[n - k - 1]
      %3 = load b[k]
      %4 = cast f32 %3
      %5 = add %2, %4
      store y[n*r + k], %5
)");
  }
}

TEST_CASE("grids of several axes, run in parts") {
  check_same_as_interpreter(R"(kernel k(x: f32[3, n, 5], out y: f32[5, n, 3]) given n
  for a < 3 grid
    for b < n grid
      for c < 5 grid
        %0 = load x[5*n*a + 5*b + c]
        store y[3*n*c + 3*b + a], %0
)",
                            {.largest = 9});
}
