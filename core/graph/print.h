#pragma once
// Text of graphs; the grammar is in docs/graph_ir.md. Values are numbered in order of definition, whatever
// their ids: texts are equal exactly if the graphs are. Not in the text unless asked for: sources.
#include <string>

#include "graph/graph.h"

namespace kerf::graph {

enum class Sources : bool { omitted, shown };

std::string to_text(const Graph& graph, Sources sources = Sources::omitted);

// One node's line, for messages. Values print as their ids.
std::string to_text(const Graph& graph, const Node& node);

std::string to_text(const TensorType& type, sym::Context& context);

}  // namespace kerf::graph
