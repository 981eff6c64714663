#pragma once
// The text of a kernel file: what it comes from, imports, the functions it calls, the kernel, and a dictionary that tells a
// reader (and the scripts that check it) its buffers, extents and blocks.
#include <string>

#include "codegen/triton/emit.h"
#include "driver/compile_tiles.h"
#include "driver/tile_target.h"

namespace kerf::driver {

std::string tile_file(const codegen::triton::KernelText& text, const TileKernel& kernel,
                      const TileTarget& target, const std::vector<std::pair<std::string, int64_t>>& sizes);

}  // namespace kerf::driver
