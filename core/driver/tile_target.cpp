#include "driver/tile_target.h"

#include <fmt/format.h>

#include <limits>

#include "base/error.h"
#include "target/npu.h"

namespace kerf::driver {

using codegen::triton::Dialect;

// A launch from the host costs more than on the CPU, and tiles of several values one after another cost no more than in
// kernels of their own.
constexpr int64_t kAnyElements = std::numeric_limits<int64_t>::max();

TileTarget find_tile_target(std::string_view name) {
  sched::Limits schedule;
  schedule.fuse.alike.max_elements = kAnyElements;
  if (name == "cuda") return {"cuda", target::Device::cuda, Dialect::nvidia, {}, schedule};
  for (const target::NpuTarget& npu : target::npu_targets()) {
    if (name != fmt::format("npu:{}", npu.name)) continue;
    // Blocks are chosen by what fits the buffer; this is where the search begins.
    sched::TileLimits limits{.sizes = {.elements = 16384, .persistent_row = npu.row_limit},
                             .folded = npu.row_limit,
                             .powers_of_two = false,
                             .programs = npu.vector_cores,
                             .masked_reads = false,
                             .backwards = false,
                             .looked_up = false,
                             .doubles = false};
    return {std::string(name), target::Device::npu, Dialect::ascend, limits,
            schedule,          npu.vector_cores,    npu.alignment,   npu.most_reads};
  }
  std::string known = "cuda";
  for (const target::NpuTarget& npu : target::npu_targets()) known += fmt::format(", npu:{}", npu.name);
  throw UserError(fmt::format("no target '{}'; there are {}", name, known));
}

}  // namespace kerf::driver
