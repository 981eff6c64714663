#include "codegen/triton/check_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "codegen/triton/buffer_bytes.h"
#include "codegen/triton/parse_text.h"
#include "codegen/triton/rules.h"
#include "codegen/triton/trace.h"

namespace kerf::triton {

namespace {

constexpr int64_t kUsablePercent =
    90;  // the device's own compiler may lay tiles out otherwise than the one measured

int64_t product(const NamedIntegers& blocks) {
  int64_t result = 1;
  for (const auto& [name, extent] : blocks) result *= extent;
  return result;
}

void check_blocks(const KernelFile& file, Violations& violations) {
  const Function& function = file.function();
  auto add = [&](std::string message) { violations.push_back({file.line, "blocks", std::move(message)}); };
  if (file.blocks.empty()) return add("KERNEL needs a choice of blocks, if only an empty one");
  for (size_t i = 1; i < file.blocks.size(); ++i)
    if (product(file.blocks[i]) > product(file.blocks[i - 1]))
      add("a choice of blocks is larger than the one before: a tuner skips what does not fit");
  for (const auto& [name, extent] : file.blocks[0]) {
    auto parameter = std::ranges::find(function.parameters, name, &Parameter::name);
    if (parameter == function.parameters.end()) {
      add(fmt::format("{} has no parameter {}", function.name, name));
      continue;
    }
    bool is_default =
        parameter->default_value.valid() && file.expressions[parameter->default_value].integer == extent;
    if (!is_default)
      add(fmt::format("the first choice of {} is {}: the signature has another", name, extent));
  }
}

std::optional<Violation> check_buffer(const KernelFile& file, const Trace& trace,
                                      const target::NpuTarget& target) {
  int64_t bytes = buffer_bytes(trace);
  int64_t usable = target.buffer_bytes * kUsablePercent / 100;
  if (bytes <= usable) return std::nullopt;
  return Violation{
      file.function().line, "buffer",
      fmt::format("tiles take {} bytes at once, {} are usable: take smaller blocks", bytes, usable)};
}

void check_npu(const KernelFile& file, const Trace& trace, const target::NpuTarget& target,
               Violations& violations) {
  check_npu_grid(trace, file, violations);
  check_npu_accesses(trace, target, violations);
  check_npu_values(trace, target, violations);
  bool multiplies = std::ranges::any_of(trace.values, [](auto& value) { return value.operation == "dot"; });
  int cores = multiplies ? target.cube_cores : target.vector_cores;
  if (file.cores < 1 || file.cores > cores)
    violations.push_back(
        {file.line, "grid", fmt::format("\"cores\" is {}: {} has {}", file.cores, target.name, cores)});
  if (auto violation = check_buffer(file, trace, target)) violations.push_back(std::move(*violation));
}

void check_file(const KernelFile& file, std::string_view target, Violations& violations) {
  bool is_cuda = target == "cuda";
  const target::NpuTarget* npu = is_cuda ? nullptr : &target::find_npu_target(target);
  check_blocks(file, violations);
  Trace trace = trace_kernel(file);
  violations.insert(violations.end(), trace.violations.begin(), trace.violations.end());
  check_bounds(trace, violations);
  check_overflow(trace, violations);
  if (trace.violations.empty()) check_unused(trace, violations);  // else uses may be lost
  check_order(trace, violations);
  if (is_cuda)
    check_arange(trace, violations);
  else
    check_npu(file, trace, *npu, violations);
  for (size_t i = 1; i < file.blocks.size(); ++i) {
    Trace smaller = trace_kernel(file, file.blocks[i]);
    violations.insert(violations.end(), smaller.violations.begin(), smaller.violations.end());
    check_bounds(smaller, violations);
    if (is_cuda)
      check_arange(smaller, violations);
    else
      check_npu(file, smaller, *npu, violations);
  }
}

}  // namespace

Checked check_text(std::string_view text, std::string_view target) {
  Checked result;
  Violations violations;
  try {
    result.file = parse_text(text);
    check_file(*result.file, target.empty() ? result.file->target : target, violations);
  } catch (const ParseError& error) {
    std::string_view message = error.what();  // begins with the place
    violations.push_back({error.line, "syntax", std::string(message.substr(message.find(": ") + 2))});
  }
  std::ranges::stable_sort(violations, {}, &Violation::line);
  for (Violation& violation : violations)
    if (std::ranges::find(result.violations, violation) == result.violations.end())
      result.violations.push_back(std::move(violation));
  return result;
}

std::optional<Violation> check_buffer(const KernelFile& file, const NamedIntegers& blocks,
                                      std::string_view target) {
  return check_buffer(file, trace_kernel(file, blocks), target::find_npu_target(target));
}

}  // namespace kerf::triton
