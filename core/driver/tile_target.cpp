#include "driver/tile_target.h"

#include <fmt/format.h>

#include "base/error.h"
#include "target/npu.h"

namespace kerf::driver {

using codegen::triton::Dialect;

TileTarget find_tile_target(std::string_view name) {
  if (name == "cuda") return {"cuda", target::Device::cuda, Dialect::nvidia, {}};
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
            npu.vector_cores,  npu.alignment,       npu.most_reads};
  }
  std::string known = "cuda";
  for (const target::NpuTarget& npu : target::npu_targets()) known += fmt::format(", npu:{}", npu.name);
  throw UserError(fmt::format("no target '{}'; there are {}", name, known));
}

}  // namespace kerf::driver
