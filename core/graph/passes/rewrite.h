#pragma once
// How passes make a new graph from an old one: node after node, with a table from old to new values. Sizes,
// sources and the order of effects are kept; outputs are mapped at the end.
#include <vector>

#include "graph/build.h"

namespace kerf::graph {

class Rewrite {
 public:
  explicit Rewrite(const Graph& from);
  Rewrite(const Rewrite&) = delete;
  Rewrite& operator=(const Rewrite&) = delete;

  const Graph& from() const { return from_; }
  Graph& to() { return to_; }
  Builder& builder() { return builder_; }

  // The new value that stands for an old one (CHECKs that there is one).
  ValueId at(ValueId old) const;
  std::vector<ValueId> at(const std::vector<ValueId>& old) const;

  // The node as it is, over the new operands. `with`: those operands instead.
  void copy(const Node& node) { copy(node, at(node.operands)); }
  void copy(const Node& node, std::vector<ValueId> with);

  // Declares what stands for the results of a node that is not copied. Types must agree but for strides:
  // where an old result has other strides, the new value is wrapped in a view that has them.
  void replace(const Node& node, const std::vector<ValueId>& with);
  // As replace for one result, whatever the strides: for values whose strides nobody sees.
  void forward(ValueId old, ValueId with) { map_[old] = with; }

  Graph finish();

 private:
  const Graph& from_;
  Graph to_;
  Builder builder_;
  IdVector<ValueId, ValueId> map_;
};

}  // namespace kerf::graph
