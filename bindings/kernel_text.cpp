#include "kernel_text.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

#include "driver/check_kernel.h"
#include "target/npu.h"

namespace nb = nanobind;

namespace kerf::bindings {

void bind_kernel_text(nb::module_& module) {
  module.def(
      "check_kernel_text",
      [](const std::string& text, const std::string& target) {
        std::vector<std::tuple<int, std::string, std::string>> result;
        for (const triton::Violation& violation : driver::check_kernel_text(text, target))
          result.emplace_back(violation.line, violation.rule, violation.message);
        return result;
      },
      nb::arg("text"), nb::arg("target") = "",
      "(line, rule, what to do) for everything in a kernel file that its target does not take; without "
      "`target`, the "
      "one that the file names.");
  module.def(
      "npu_targets",
      [] {
        std::vector<std::tuple<std::string, std::string, int64_t, bool>> result;
        for (const target::NpuTarget& target : target::npu_targets())
          result.emplace_back(std::string(target.name), std::string(target.vendor_name), target.buffer_bytes,
                              target.is_a5);
        return result;
      },
      "(target without `npu:`, the vendor's name of it, bytes of the buffer, whether it is an A5).");
}

}  // namespace kerf::bindings
