#include "target/npu.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace kerf::target {

namespace {

constexpr NpuTarget kTargets[] = {
#define NPU_TARGET(...) {__VA_ARGS__},
#include "target/npu.def"
#undef NPU_TARGET
};

}  // namespace

std::span<const NpuTarget> npu_targets() { return kTargets; }

const NpuTarget& find_npu_target(std::string_view name) {
  std::string_view bare = name.starts_with("npu:") ? name.substr(4) : name;
  auto found = std::ranges::find(kTargets, bare, &NpuTarget::name);
  if (found != std::end(kTargets)) return *found;
  std::string names;
  for (const NpuTarget& target : kTargets)
    names += fmt::format("{}npu:{}", names.empty() ? "" : ", ", target.name);
  throw UserError(fmt::format("no target '{}'; there are {}", name, names));
}

}  // namespace kerf::target
