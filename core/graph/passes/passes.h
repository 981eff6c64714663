#pragma once
// The passes over graphs: each a free function, graph in, graph out, in a file of its name.
#include <string>

#include "graph/graph.h"
#include "target/routing.h"

namespace kerf::graph {

// Calls that are external become what the importer makes of them (import_aten.h): how the importer is run on
// text, and how graphs captured without it are compiled.
Graph import_externals(const Graph& graph);

// Removes nodes whose results nobody reads (effects and inputs stay).
Graph remove_dead_nodes(const Graph& graph);

// One node for equal nodes (op, operands, attributes); random draws and effects are never joined.
Graph eliminate_common_nodes(const Graph& graph);

// Views of views become one, identity views and casts vanish, copies go unless the caller could tell, and
// operands that an apply broadcasts anyway are not expanded. Transposed operands of matrix products stay views
// (the library takes strides).
Graph simplify_views(const Graph& graph);

// Attention that a model writes out becomes the library's, where nobody keeps the probabilities and the target wants it.
Graph recognize_attention(const Graph& graph, target::Router& router);

// Composites that the target wants as library calls become externs.
Graph route_composites(const Graph& graph, target::Router& router);

// Every composite becomes pointwise, reduce, view and gather nodes, computed in f32 (f64 for f64) with one
// rounding at the end, in the formulation that eager's kernels use.
Graph expand_composites(const Graph& graph);

// Rows added into zeros, and that added to another value: the rows are added to the value.
Graph join_added_scatters(const Graph& graph);

}  // namespace kerf::graph
