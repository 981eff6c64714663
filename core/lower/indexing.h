#pragma once
// Positions that come from data, shared by indexed reads (gather.cpp) and writes (scatter.cpp).
#include <span>

#include "lower/draft.h"

namespace kerf::lower {

struct Indexed {
  Position position;              // in the data
  std::vector<sym::Expr> bounds;  // that the indices in it were checked against
};

// `index` and `index_put`: where `position` of the indexed shape (the data's without dims, with the indices' common
// shape inserted at `dim`) lies in the data, operand 0.
Indexed indexed_position(KernelDraft& draft, const graph::Node& node, std::span<const graph::ValueId> indices,
                         const Position& position);

// `gather` and `scatter`: `position` with its dimension `dim` replaced by the index found there, operand 1.
Indexed gathered_position(KernelDraft& draft, const graph::Node& node, Position position);

}  // namespace kerf::lower
