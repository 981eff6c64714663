#include "runtime/serialize.h"

#include "base/error.h"
#include "runtime/content_hash.h"
#include "runtime/lifetimes.h"
#include "runtime/plan_text.h"
#include "runtime/sealed.h"

namespace kerf::runtime {

namespace {

// Another layout of the bytes or another text form is another version.
constexpr std::string_view kHeader = "kerf plan 1\n";

// `parts`: the text, then the objects of all artifacts.
std::optional<Plan> read_parts(const std::vector<std::string_view>& parts) {
  if (parts.empty()) return std::nullopt;
  std::vector<std::string> hashes;
  Plan plan = parse_plan(parts[0], &hashes);
  if (plan.artifacts.size() + 1 != parts.size()) return std::nullopt;
  for (size_t i = 0; i < plan.artifacts.size(); ++i) {
    std::string_view object = parts[i + 1];
    if ((object.empty() ? "" : content_hash({object})) != hashes[i]) return std::nullopt;
    plan.artifacts[i].object = object;
  }
  verify(plan);
  return plan;
}

}  // namespace

std::string serialize(const Plan& plan) {
  std::string text = to_text(plan);
  std::vector<std::string_view> parts = {text};
  for (const target::CpuArtifact& artifact : plan.artifacts) parts.push_back(artifact.object);
  return seal(kHeader, parts);
}

std::optional<Plan> deserialize(std::string_view bytes) {
  std::optional<std::vector<std::string_view>> parts = unseal(kHeader, bytes);
  if (!parts) return std::nullopt;
  // Parts under a right checksum were written by us; it can still be of a version that forgot to say so.
  try {
    return read_parts(*parts);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace kerf::runtime
