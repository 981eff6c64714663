// Failing operations: the record of the first active lane, harmless values, and nothing from inactive lanes.
#include "same_as_interpreter.h"

#include <doctest/doctest.h>

using namespace kerf;
using target::KernelError;

namespace {

constexpr const char* kGather = R"(kernel k(x: f32[4], j: i64[n], out y: f32[n]) given n
  for i < n vector LANES
    %0 = load j[i]
    %1 = const i64 4
    %2 = wrap_index %0, %1
    %3 = load x[%2]
    store y[i], %3
)";

KernelError run(const std::string& text, int lanes, testing::KernelData data) {
  sym::Context context;
  loop::Kernel kernel = testing::kernel_of(context, text, lanes);
  return testing::compiled(kernel, std::move(data)).error;
}

}  // namespace

TEST_CASE("an index outside its bound is reported with the index as it was given") {
  for (int lanes : {1, 8, 64}) {
    testing::KernelData data = testing::data_of(kGather, 100, 1, testing::Fill::exact);
    auto* indices = reinterpret_cast<int64_t*>(data.buffers[1].data());
    indices[0] = -4;
    CHECK_EQ(run(kGather, lanes, data).code, KernelError::kNone);
    for (int64_t place : {0, 70, 99}) {
      testing::KernelData bad = data;
      reinterpret_cast<int64_t*>(bad.buffers[1].data())[place] = -5;
      KernelError error = run(kGather, lanes, bad);
      CHECK_EQ(error.code, KernelError::kIndex);
      CHECK_EQ(error.index, -5);
      CHECK_EQ(error.bound, 4);
      CHECK_EQ(error.value, 2);
    }
  }
}

TEST_CASE("the first failing lane is the one reported") {
  testing::KernelData data = testing::data_of(kGather, 16, 1, testing::Fill::exact);
  auto* indices = reinterpret_cast<int64_t*>(data.buffers[1].data());
  indices[5] = 11;
  indices[9] = 12;
  CHECK_EQ(run(kGather, 16, data).index, 11);
}

TEST_CASE("division by zero is reported and gives zero, for each kind and type") {
  for (const char* op : {"floor_div", "trunc_div", "rem", "fmod"}) {
    for (const char* dtype : {"i64", "i32", "i8", "u8"}) {
      CAPTURE(op);
      CAPTURE(dtype);
      std::string type = dtype;
      testing::check_same_as_interpreter(
          "kernel k(x: " + type + "[n], d: " + type + "[n], out y: " + type +
              "[n]) given n\n  for i < n vector LANES\n    %0 = load x[i]\n    %1 = load d[i]\n    %2 = " +
              op + " %0, %1\n    store y[i], %2\n",
          {.largest = 20});
    }
  }
}

TEST_CASE("a failure under a false guard or in a lane past the end does not happen") {
  std::string text = R"(kernel k(x: i64[n], inout y: i64[n]) given n
  for i < n vector LANES
    %0 = load x[i]
    %1 = const i64 0
    %2 = ne %0, %1
    if %2
      %3 = const i64 12
      %4 = trunc_div %3, %0
      store y[i], %4
)";
  testing::check_same_as_interpreter(text, {.fill = testing::Fill::exact});
  testing::KernelData data = testing::data_of(text, 37, 3, testing::Fill::exact);
  CHECK_EQ(run(text, 16, data).code, KernelError::kNone);
}
