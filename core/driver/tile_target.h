#pragma once
// Targets that compute in tiles: what the scheduler and the Triton emitter need to know of them.
#include <cstdint>
#include <string>
#include <string_view>

#include "codegen/triton/emit.h"
#include "sched/schedule_program.h"
#include "sched/tile_kernel.h"
#include "target/routing.h"

namespace kerf::driver {

struct TileTarget {
  std::string name;  // "npu:910B3", "cuda"
  target::Device device = target::Device::cuda;
  codegen::triton::Dialect dialect = codegen::triton::Dialect::nvidia;
  sched::TileLimits limits;
  sched::Limits schedule;
  int cores = 0;                // programs run at the same time; 0: as many programs as tiles
  int64_t alignment_bytes = 4;  // the last dimension of a tile is a multiple of it
  int most_reads = 0;           // of a merged kernel; 0: any number
};

// UserError that lists the targets if there is none of that name.
TileTarget find_tile_target(std::string_view name);

}  // namespace kerf::driver
