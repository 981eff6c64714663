#pragma once
// Tiles for targets that compute in them: which coordinates of a fused kernel are dimensions of the tile, and how long they are.
// Decides roles only (Role::tile and its lanes, Role::grid for outer axes walked one index at a time).
//
//   softmax over x[4096, 500]      x0 tile 8, r tile 512 (whole: the row stays on chip)
//   column sum of x[256, 768]      r tile 32, x0 tile 256 (an accumulator tile, folded at the end)
//   transpose of x[512, 768]       x0 tile 64, x1 tile 64 (both sides read or write along memory)
//
// A row that the kernel goes over more than once is one tile while it is no longer than `persistent_row`; a longer one is
// walked, and what it kept from one walk to the next is computed again (recompute_rows).
#include <memory>
#include <vector>

#include "loop/kernel.h"

namespace kerf::sched {

struct TileSizes {
  int64_t elements = 4096;        // of a tile, at most
  int64_t persistent_row = 4096;  // elements of a row that stays on chip
  bool tile_rows = true;          // else rows with inner axes are walked one by one
};

struct TileLimits {
  TileSizes sizes;
  int64_t folded = 1 << 20;   // elements of a tile's dimension that is folded, at most
  bool powers_of_two = true;  // NVIDIA's Triton has no other blocks
  int64_t alignment = 8;      // elements that the last dimension is a multiple of
  int64_t programs = 128;     // tiles wanted at least, where that is possible with tiles worth a program
  bool masked_reads = true;   // else reads under masks, and wrapped indices, become parts (split_boxes)
  bool backwards = true;      // else no dimension of a tile is read or written backwards, as a flip does
  bool looked_up = true;      // else coordinates of indices that addresses are made of are walked one by one
  bool doubles = true;        // else what is computed in f64 between narrower buffers is computed in f32
};

struct TiledKernel {
  std::vector<loop::Kernel> parts;  // over the same buffers, one after another
  bool fits = true;                 // the required rows are within `elements`
};

// All tilings of a kernel under limits that differ in sizes: what they have in common is found once.
class Tilings {
 public:
  // outer_is_parallel as in ScheduleOptions.
  Tilings(const loop::Kernel& kernel, const TileLimits& limits, bool outer_is_parallel);
  ~Tilings();

  struct Blocks {
    std::vector<std::vector<int64_t>> sizes;  // of each part: per coordinate, 0: no dimension of the tile
    bool fits = true;                         // as in TiledKernel
  };
  Blocks blocks(const TileSizes& sizes);
  // Equal sizes are equal kernels.
  TiledKernel at(const Blocks& blocks) const;

 private:
  class Part;
  std::vector<std::unique_ptr<Part>> parts_;
};

TiledKernel tile_kernel(const loop::Kernel& kernel, const TileLimits& limits, bool outer_is_parallel);

// Sums of parts in f64 and the like, in f32. A kernel with f64 buffers stays as it is.
loop::Kernel narrow_doubles(const loop::Kernel& kernel);

// Local rows, and values read back after they were written, are computed again where they are read: the kernel has no local
// buffers then and reads nothing that it wrote (but rows that a loop adds to). Same results.
loop::Kernel recompute_rows(const loop::Kernel& kernel);

}  // namespace kerf::sched
