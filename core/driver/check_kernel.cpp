#include "driver/check_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "codegen/triton/buffer_bytes.h"
#include "codegen/triton/check_text.h"
#include "codegen/triton/parse_text.h"

namespace kerf::driver {

std::vector<triton::Violation> check_kernel_text(std::string_view text, std::string_view target) {
  return triton::check_text(text, target).violations;
}

std::string to_text(const std::vector<triton::Violation>& violations, std::string_view place) {
  std::string result;
  for (const triton::Violation& violation : violations)
    result += fmt::format("{}:{}: {}: {}\n", place, violation.line, violation.rule, violation.message);
  return result;
}

std::string describe_kernel(std::string_view text) {
  std::vector<triton::Violation> violations = check_kernel_text(text);
  if (!violations.empty()) throw UserError(to_text(violations, "kernel"));
  triton::KernelFile file = triton::parse_text(text);
  triton::Trace trace = triton::trace_kernel(file);
  auto stores = std::ranges::count(trace.accesses, true, &triton::Access::is_store);
  return fmt::format("{} for {}: {} loads, {} stores, {} bytes of buffer\n", file.function().name,
                     file.target, static_cast<int64_t>(trace.accesses.size()) - stores, stores,
                     triton::buffer_bytes(trace));
}

}  // namespace kerf::driver
