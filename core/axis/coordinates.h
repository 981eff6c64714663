#pragma once
// The coordinates of a kernel: which of its loops walk the same canonical axis. A fused kernel goes over its inner axes once
// for each fold and once more to store; each time the loops have symbols of their own. A target that computes in tiles has one
// dimension for all of them.
//
//   for x0 < 256                         x0  outer
//     %1 = reduce max for r0 < 128       r   inner, folded: r0, r1 and r2
//     %2 = reduce sum for r1 < 128
//     for r2 < 128
//       store ...
//
// The loops around everything else are outer coordinates, each its own. A loop around several statements with loops in them
// (the rows over which columns are summed) is a coordinate of its own too. The others are nests without loops beside them inside;
// the k-th axes of two such nests, counted from inside, are one coordinate when their extents are equal.
#include <string>
#include <vector>

#include "loop/kernel.h"

namespace kerf::axis {

enum class CoordinateKind : uint8_t { outer, row, inner };  // row: a loop around nests of loops

struct Coordinate {
  std::string
      name;  // a name that no other coordinate has: that of the outer axis, or r, r0, r1 for inner ones
  sym::Expr extent;
  CoordinateKind kind = CoordinateKind::outer;
  std::vector<loop::AxisId> axes;  // in program order
  bool folded = false;             // some reduce runs over it
};

struct Coordinates {
  std::vector<Coordinate> list;               // outer ones first, in order; rows; inner ones outermost first
  IdVector<loop::AxisId, size_t> of;          // per axis: its coordinate
  std::vector<sym::Substitution> to_symbols;  // every axis to the symbol of its coordinate's first axis

  sym::Expr symbol(const loop::Kernel& kernel, size_t coordinate) const {
    return kernel.axes[list[coordinate].axes.front()].symbol;
  }
};

Coordinates coordinates_of(const loop::Kernel& kernel);

// The order of a tile's dimensions, for all values of the kernel: last the coordinate along which accesses move the most bytes
// at stride 1 (stores count double), the others by falling strides of the heaviest access, then as listed. Only the coordinates
// for which `in_tile` is set.
std::vector<size_t> tile_order(const loop::Kernel& kernel, const Coordinates& coordinates,
                               const std::vector<bool>& in_tile);

}  // namespace kerf::axis
