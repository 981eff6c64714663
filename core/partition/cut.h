#pragma once
// Which values the forward pass keeps for the backward pass. Every other value that the backward pass needs is
// computed there again, from what was kept.
//
// The choice is a minimum cut. A node v becomes two vertices; each edge is a price paid if it is cut:
//   start -> v.in    repeat(v): v is computed in the backward pass
//   v.in -> v.out    keep(v): v is computed in the forward pass only, and kept
//   v.out -> u.in    unbounded: who computes u in the backward pass has v there (u's recipe, if it has one)
//   v.out -> end     unbounded, where the gradients themselves need v
// Left of the cut is what the backward pass never sees. So the sum of prices over kept and repeated values is least
// among all choices; prices.def says what they weigh. Example: y = exp(x) * w with x from a matrix product, 4 KB each.
// The gradient of w reads exp(x), that of x reads y: keeping x and repeating exp in the backward kernel that reads it
// is cheaper than keeping x and exp(x).
//
// Never repeated: matrix products, library calls, random draws, writes, and what a checkpoint policy keeps. Never kept:
// views (their base is; those that the forward pass returns are) and values that are no tensors. Arguments that the
// forward pass writes to hold other values afterwards, so what is computed from them is not repeated. A checkpointed region's nodes are repeated, except where the next region begins.
#include "base/result.h"
#include "partition/joint.h"

namespace kerf::partition {

struct Cut {
  std::vector<uint32_t> kept;      // nodes, ascending; arguments among them
  std::vector<uint32_t> repeated;  // in both passes or by recipe, ascending
  std::vector<uint32_t> forward;   // needed by the forward pass itself, ascending
  int64_t kept_bytes = 0;          // without static arguments
};

// Unsupported if the constraints exclude each other (a value that can be neither kept nor computed again).
Result<Cut> cut_joint_graph(const JointGraph& graph);

}  // namespace kerf::partition
