#pragma once
// What keeping and repeating a node costs, by its operator and place; prices.def has the numbers.
#include <optional>

#include "graph/graph.h"
#include "partition/joint.h"

namespace kerf::partition {

// Facts of the whole joint graph, one entry per node.
struct Roles {
  std::vector<bool> needs_tangent;  // computed in the backward pass, as gradients are
  std::vector<bool> in_forward;     // needed by forward outputs and effects
  std::vector<bool> forward_output;
  std::vector<bool> written;        // arguments that the forward pass writes to, and views of them
  std::vector<bool> reads_written;  // sees another value in the backward pass
  std::vector<bool>
      read_later;  // itself or a view of it, in the forward pass, past a library call: so in memory
  std::vector<bool> read_whole_backward;             // the same by a library call in the backward pass
  std::vector<std::optional<graph::Family>> family;  // none: not computed by Kerf, or no operator
};
Roles roles_of(const JointGraph& graph);

// kUnbounded: never.
int64_t keep_price(const JointGraph& graph, const Roles& roles, uint32_t node);
int64_t repeat_price(const JointGraph& graph, const Roles& roles, uint32_t node);

}  // namespace kerf::partition
