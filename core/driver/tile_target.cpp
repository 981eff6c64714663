#include "driver/tile_target.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"

namespace kerf::driver {

using codegen::triton::Dialect;

TileTarget find_tile_target(std::string_view name) {
  // Elements of a tile: half of what 4-byte elements fill, in the six tiles that an operation of two operands needs at least.
  auto npu = [&](std::string text, int cores, int64_t bytes, int64_t row) {
    return TileTarget{std::move(text),
                      Dialect::ascend,
                      {.elements = 8192, .persistent_row = row, .powers_of_two = false, .alignment = 8, .programs = cores,
                       .masked_reads = false},
                      cores,
                      bytes,
                      24};
  };
  const std::array targets{TileTarget{"cuda", Dialect::nvidia, {}, 0, 0, 0}, npu("npu:910B3", 40, 192 << 10, 1024),
                           npu("npu:910_9382", 48, 192 << 10, 1024), npu("npu:950", 64, 248 << 10, 4096)};
  std::string known;
  for (const TileTarget& target : targets) {
    if (target.name == name) return target;
    known += (known.empty() ? "" : ", ") + target.name;
  }
  throw UserError(fmt::format("no target '{}'; there are {}", name, known));
}

}  // namespace kerf::driver
