#include "graph/graph.h"

#include <algorithm>

namespace kerf::graph {

const AttrValue* Node::find(Attr attr) const {
  auto found = std::ranges::find(attributes, attr, &std::pair<Attr, AttrValue>::first);
  return found == attributes.end() ? nullptr : &found->second;
}

sym::Facts facts_of(const Graph& graph) {
  sym::Facts facts;
  for (const Size& size : graph.sizes) {
    facts.set_range(size.symbol, size.range);
    facts.set_modulus(size.symbol, size.modulus);
  }
  return facts;
}

}  // namespace kerf::graph
