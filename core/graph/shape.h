#pragma once
// Types of results: what a node's op, operands and attributes imply. The builder makes values of these types
// and the verifier compares them, so that the rules are written once.
//
// Sizes are equal when they are the same expression or provably equal under the graph's facts. Two symbolic
// sizes that can be neither proved equal nor proved different are taken to be equal where torch has checked
// the same condition (operands of one shape, products of reshapes).
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace kerf::graph {

using Shape = std::vector<sym::Expr>;

bool same_size(const Graph& graph, sym::Expr a, sym::Expr b);       // provably
bool different_size(const Graph& graph, sym::Expr a, sym::Expr b);  // provably
bool same_shape(const Graph& graph, std::span<const sym::Expr> a, std::span<const sym::Expr> b);

std::string to_text(std::span<const sym::Expr> shape);  // "[s0, 768]"

// Trailing dimensions are aligned; of two sizes the one that is not 1.
Result<Shape> broadcast(const Graph& graph, std::span<const Shape> shapes);

// The types of all results. `given` are the types the node's results have or shall have: parts that nothing
// implies (the length of a slice, the types of inputs, externs and side outputs) are taken from there. Strides
// are contiguous unless given with the same shape.
Result<std::vector<TensorType>> infer_types(const Graph& graph, const Node& node,
                                            std::span<const TensorType> given);

// The shape of data indexed along `dims` with the indices' common shape standing at result dimension `at`.
Shape indexed_shape(const Shape& data, const std::vector<int64_t>& dims, const Shape& index, int64_t at);

// 0 <= dim < rank after counting a negative one from the end; a 0-d tensor has the dimensions -1 and 0.
int64_t wrap_dim(int64_t dim, size_t rank);

// The strides that the argument of an input node has: eager's, or its own.
const std::vector<sym::Expr>& strides_of_input(const Graph& graph, const Node& input);

// How often each value is read by nodes and outputs.
IdVector<ValueId, int> count_uses(const Graph& graph);

}  // namespace kerf::graph
