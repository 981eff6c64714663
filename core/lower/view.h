#pragma once
// The index maps of view nodes (permute, reshape, expand, slice, flip, as_strided): the one place that knows what
// each view means.
#include <vector>

#include "graph/graph.h"
#include "lower/place.h"
#include "sym/facts.h"

namespace kerf::lower {

using Position = std::vector<sym::Expr>;

// The operand's element that is the view's element at `position`. `facts` know the symbols in the position.
Position source_position(const graph::Graph& graph, const graph::Node& view, const Position& position,
                         const sym::Facts& facts);

// The place of a view of a value that is at `source`. Strided whenever strides can express it.
Place place_of_view(const graph::Graph& graph, graph::NodeId view, const Place& source,
                    const sym::Facts& facts);

// The position of a broadcast operand: trailing dimensions aligned, dimensions of one element repeated.
Position broadcast_position(std::span<const sym::Expr> operand_shape, const Position& position);

}  // namespace kerf::lower
