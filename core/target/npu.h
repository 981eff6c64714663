#pragma once
// The Ascend NPUs that kernels are written for, as rows of data (npu.def).
#include <cstdint>
#include <span>
#include <string_view>

namespace kerf::target {

struct NpuTarget {
  std::string_view name;  // "910B3"
  int vector_cores;
  int cube_cores;
  int64_t buffer_bytes;  // the unified buffer of one vector core
  int64_t row_limit;     // elements of a row that is folded in one tile
  bool is_a5;            // vector registers instead of operations on the buffer
  std::string_view vendor_name;

  int64_t alignment = 32;  // bytes: the rows of a tile are padded to it
  int most_reads = 24;     // loads of one fused kernel
  int64_t most_programs = 65535;
  int64_t most_elements = 1048576;  // of one tile
  int most_rank = 5;                // of one tile
};

std::span<const NpuTarget> npu_targets();

// By "910B3" or "npu:910B3"; UserError that lists the names for any other.
const NpuTarget& find_npu_target(std::string_view name);

}  // namespace kerf::target
