#pragma once
// Kernels as Triton functions: one emitter, two dialects. NVIDIA's Triton and Triton-Ascend 3.2.0 differ in rows of the operation
// table and in what is refused.
//
// What becomes what
//   * Loops that walk one canonical axis are one coordinate (axis/coordinates.h). A coordinate whose axes have the role `tile` is
//     a dimension of the tile, in one order for all values of the kernel (axis::tile_order). The others are walked one
//     index at a time.
//   * The outermost grid and tile loops are the grid: a program computes one tile of them, or on Ascend, where programs are
//     as few as cores, one after another.
//   * An inner tile that spans its whole extent needs no loop: the row stays on chip, and what is kept in a local row or
//     read back just after it was written is the value itself. Otherwise it is walked tile by tile, folds keep an accumulator
//     tile, and such rows are refused (sched/recompute_rows removes them).
//   * A row in memory to which the iterations of a loop add (a column sum) is an accumulator, stored after the loop.
//   * Parts of a kernel (sched/split_boxes) are tile loops one after another; every program does its share of each.
//   * Points outside the domain (a tile that overhangs its extent) are masked by conjunctions of `index < extent`, one for each
//     dimension that overhangs, and only where an access or a fold needs it.
//
// Contract: the kernel is valid, its tile axes have lanes. Deterministic. Does not choose tiles (sched/choose_tiles) and does not
// look at the hardware's sizes.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "loop/kernel.h"

namespace kerf::codegen::triton {

enum class Dialect : uint8_t { nvidia, ascend };

// A dimension of the tiles.
struct TileAxis {
  std::string name;    // of the coordinate: "x0"
  std::string extent;  // the function's parameter "X0"; of a dynamic extent an expression over sizes
  std::string block;   // the parameter "BX0"
  int64_t lanes = 0;   // the block's size
  bool whole = false;  // one tile spans the extent
  loop::AxisId axis;   // of the part's kernel: one that has these lanes
};

// The text of a part: a kernel on a box of its domain.
struct PartText {
  std::vector<std::string>
      parameters;  // per coordinate: of its constant extent; empty where the text does not have it
  std::vector<TileAxis> tile;  // in tile order
  // The number of tiles is the product of ceil(extent / block); a block is empty where indices are walked one by one.
  std::vector<std::pair<std::string, std::string>> grid;
};

struct KernelText {
  std::string function;              // with its decorator
  std::string body;                  // what follows the signature
  std::vector<std::string> library;  // functions of library.h that it calls, in order of need
  bool uses_libdevice = false;
  std::vector<std::pair<std::string, int64_t>>
      extents;  // constant extents: parameter and value, in signature order
  std::vector<PartText> parts;
};

// What a text depends on of the sizes of blocks: the bodies of tilings of one kernel are equal where this is.
std::vector<int64_t> form_of(std::span<const loop::Kernel> parts);

// Kernels over the same buffers, one after another in one function, as text; or why there is none. NVIDIA has one part.
Result<KernelText> emit(std::span<const loop::Kernel> parts, Dialect dialect);

}  // namespace kerf::codegen::triton
