#include "driver/tile_target.h"

#include <fmt/format.h>

#include <limits>

#include "base/error.h"
#include "target/npu.h"

namespace kerf::driver {

using codegen::triton::Dialect;

namespace {

// Of a device that runs `programs` at a time.
sched::Limits schedule_limits(int64_t programs) {
  sched::Limits limits;
  limits.split.min_step_elements = sched::tuning::split_program_elements;
  limits.split.busy_steps = programs;
  limits.split.wanted_steps = sched::tuning::split_fold_rounds * programs;
  // A launch costs more than on the CPU, and tiles of several values one after another cost no more than in kernels of
  // their own.
  limits.fuse.alike.max_elements = std::numeric_limits<int64_t>::max();
  return limits;
}

}  // namespace

TileTarget find_tile_target(std::string_view name) {
  if (name == "cuda") {
    const sched::TileLimits limits;
    return {"cuda", target::Device::cuda, Dialect::nvidia, limits, schedule_limits(limits.programs)};
  }
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
    return {
        std::string(name), target::Device::npu, Dialect::ascend, limits, schedule_limits(npu.vector_cores),
        npu.vector_cores,  npu.alignment,       npu.most_reads};
  }
  std::string known = "cuda";
  for (const target::NpuTarget& npu : target::npu_targets()) known += fmt::format(", npu:{}", npu.name);
  throw UserError(fmt::format("no target '{}'; there are {}", name, known));
}

}  // namespace kerf::driver
