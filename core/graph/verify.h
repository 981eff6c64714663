#pragma once
// Checks a graph. Each invariant has a name, which begins the message of its violation, and a golden test in
// tests/golden/graph/error_*.txt (those that no text can violate: tests/unit/graph/verify_test.cpp).
//
//   ids          ids are in range; a value's producer lists it as the result it says
//   sizes        size symbols are distinct and of kind size; every expression mentions given sizes only
//   order        operands are results of earlier nodes
//   operands     as many operands and results as the op's row says
//   attributes   exactly those the row names, each of its kind (attributes.def), sorted
//   types        result dtypes and shapes are what op, operands and attributes imply (shape.h); `dtype` and
//                `shape` attributes repeat the first result's type
//   opaque       only inputs, externs and assigns touch values of a dtype that Kerf does not compute with
//   inputs       no two inputs have one index
//   external     tensor arguments are the operands, each once and in order; a name and a reason are given
//   outputs      tensor outputs are values of the graph, integer outputs expressions over its sizes
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace kerf::graph {

// One message per violation, `name: what, in: node`; empty for a valid graph.
std::vector<std::string> verify(const Graph& graph);

// CHECKs that `verify` finds nothing; `when` says where we are ("after simplify_views").
void check_valid(const Graph& graph, std::string_view when);

}  // namespace kerf::graph
