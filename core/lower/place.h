#pragma once
// Where the elements of a graph value are found: the only thing readers know about it.
//
//   Strided   in a buffer, at offset + sum(position_d * strides_d). Values that kernels and externs compute, graph
//             inputs, and every view of them that strides can express.
//   Mapped    through the index map of a view node, at some position of that node's operand (view.h), or through a
//             window over positions (window.cpp)
//   Uniform   every element is this constant; a view of it is the same
//   Iota      start + step * position, never in memory
// Absent: not lowered yet, or an unused result of an extern.
#include <span>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/strides.h"
#include "sym/facts.h"
#include "target/extern_call.h"

namespace kerf::lower {

struct Strided {
  target::BufferIndex buffer = target::kNoBuffer;
  std::vector<sym::Expr> strides;
  sym::Expr offset;
  bool flipped = false;  // strides may be negative: kernels can read it, torch cannot hold it
};

struct Mapped {
  graph::NodeId view;
};

struct Uniform {
  Scalar value;
};

struct Iota {
  sym::Expr start;
  sym::Expr step;
};

struct Absent {};

using Place = std::variant<Absent, Strided, Mapped, Uniform, Iota>;

using graph::same_strides;

// sum(position_d * strides_d)
sym::Expr linear_index(sym::Context& context, std::span<const sym::Expr> position,
                       std::span<const sym::Expr> strides);

// Elements from the first to the last that a view of this geometry touches; 0 without elements.
sym::Expr storage_extent(sym::Context& context, std::span<const sym::Expr> shape,
                         std::span<const sym::Expr> strides, const sym::Facts& facts);

}  // namespace kerf::lower
