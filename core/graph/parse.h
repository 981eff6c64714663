#pragma once
// Reads the text form of graphs (docs/graph_ir.md). Throws ParseError with the place for text that is not in
// the grammar, names an unknown value or size, or defines a value twice. Types, counts and the other
// invariants are the verifier's: what it should reject can be written down and read. Printing a parsed graph
// gives canonical text.
#include <string_view>

#include "graph/graph.h"

namespace kerf::graph {

Graph parse(std::string_view text, sym::Context& context);

}  // namespace kerf::graph
