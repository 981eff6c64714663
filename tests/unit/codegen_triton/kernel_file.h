#pragma once
// Kernel files around the statements of a test.
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace kerf::testing {

// A function `k` of buffers x, y (read) and z (written), each of 2^20 elements.
inline std::string kernel_file(std::string_view body, std::string_view constants = "",
                               std::string_view target = "npu:910B3", std::string_view dtype = "f32") {
  std::string buffers;
  for (std::string_view name : {"x", "y", "z"})
    buffers +=
        fmt::format(R"({{"name": "{}", "dtype": "{}", "elements": 1048576, "mode": "in"}},)", name, dtype);
  return fmt::format(
      "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x_ptr, y_ptr, z_ptr{}):\n{}\n\n"
      "KERNEL = {{\"name\": \"k\", \"target\": \"{}\", \"buffers\": [{}], \"extents\": {{}}, \"blocks\": "
      "[{{}}], "
      "\"grid\": [], \"cores\": 40}}\n",
      constants, body, target, buffers);
}

}  // namespace kerf::testing
