#include "runtime/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "runtime/content_hash.h"
#include "runtime/lifetimes.h"
#include "sym/text.h"
#include "target/text.h"

namespace kerf::runtime {

namespace {

using target::quoted;

std::string size_text(const PlanSize& size) {
  std::string name = sym::to_text(size.symbol);
  std::vector<std::string> clauses;
  const auto& [lo, hi] = size.range;
  if (lo && hi) {
    clauses.push_back(fmt::format("{} in [{}, {}]", name, *lo, *hi));
  } else if (lo) {
    clauses.push_back(fmt::format("{} >= {}", name, *lo));
  } else if (hi) {
    clauses.push_back(fmt::format("{} <= {}", name, *hi));
  }
  const auto& [modulus, remainder] = size.modulus;
  if (modulus == 0) clauses.push_back(fmt::format("{} = {}", name, remainder));
  if (modulus > 1) clauses.push_back(fmt::format("{} mod {} = {}", name, modulus, remainder));
  return clauses.empty() ? name : fmt::format("{}", fmt::join(clauses, ", "));
}

std::string input_text(size_t index, const PlanInput& input) {
  std::string text = fmt::format("input {}: ", index);
  if (input.is_integer) {
    text += "integer";
  } else {
    text += fmt::format("{}{} strides {}", to_text(input.dtype), target::to_text(input.shape),
                        target::to_text(input.strides));
  }
  return text + (input.is_used ? "" : " unused") + (input.is_opaque ? " opaque" : "");
}

std::string storage_text(const PlanBuffer& buffer) {
  switch (buffer.storage) {
    case Storage::input: return fmt::format("input {}", buffer.input_index);
    case Storage::arena: return "arena";
    case Storage::output: return fmt::format("output {}", buffer.output_index);
    case Storage::adopted: return "adopted";
  }
  UNREACHABLE("storage of a buffer");
}

std::string buffer_text(size_t index, const PlanBuffer& buffer) {
  std::string live = is_used(buffer) ? fmt::format("live {} to {}", buffer.first_step, buffer.last_step)
                                     : std::string("never");
  return fmt::format("buffer %{} {}: {}[{}] {} {}", index, quoted(buffer.name), to_text(buffer.dtype),
                     sym::to_text(buffer.elements), storage_text(buffer), live);
}

std::string artifact_text(size_t index, const target::CpuArtifact& artifact) {
  std::string hash = artifact.object.empty() ? "" : content_hash({artifact.object});
  return fmt::format("artifact {} {} scratch {} object {}", index, quoted(artifact.name),
                     artifact.scratch_bytes, quoted(hash));
}

std::string step_text(const LaunchStep& launch) {
  std::string text = fmt::format("  launch {} {}", launch.artifact, quoted(launch.name));
  for (size_t i = 0; i < launch.buffers.size(); ++i)
    text += fmt::format("{}%{}", i ? ", " : " ", launch.buffers[i]);
  std::vector<std::string> sources;
  for (const std::string& source : launch.sources) sources.push_back(quoted(source));
  return text + fmt::format(" sizes {} grid {} work {} sources [{}]\n", target::to_text(launch.sizes),
                            sym::to_text(launch.grid), sym::to_text(launch.work), fmt::join(sources, ", "));
}

std::string step_text(const target::ExternCall& call) { return target::to_text(call, "  "); }

}  // namespace

std::string to_text(const Plan& plan) {
  std::vector<std::string> sizes;
  for (const PlanSize& size : plan.sizes) sizes.push_back(size_text(size));
  std::string out = sizes.empty() ? "plan\n" : fmt::format("plan given {}\n", fmt::join(sizes, ", "));
  auto line = [&](const std::string& text) { out += fmt::format("  {}\n", text); };
  for (const target::SizeSource& source : plan.size_sources) line(target::to_text(source));
  for (size_t i = 0; i < plan.inputs.size(); ++i) line(input_text(i, plan.inputs[i]));
  for (size_t i = 0; i < plan.buffers.size(); ++i) line(buffer_text(i, plan.buffers[i]));
  for (size_t i = 0; i < plan.artifacts.size(); ++i) line(artifact_text(i, plan.artifacts[i]));
  for (const auto& step : plan.steps) out += std::visit([](const auto& s) { return step_text(s); }, step);
  for (const target::ProgramOutput& output : plan.outputs) line("return " + target::to_text(output));
  return out;
}

}  // namespace kerf::runtime
