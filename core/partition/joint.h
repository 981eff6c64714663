#pragma once
// A joint graph (forward and backward of a training step, as AOTAutograd traces it) as the cut sees it: plain nodes
// in an order in which operands come first. What a node computes is known by its operator's name only; see price.h.
#include <cstdint>
#include <string>
#include <vector>

namespace kerf::partition {

enum class Source : uint8_t {
  argument,  // of the forward pass
  tangent,   // an incoming gradient
  constant,  // held by the graph: at hand in both passes
  call,
};

enum class Form : uint8_t {
  tensor,
  size,   // an integer: kept beside the tensors, at next to no price
  other,  // a tuple, a float, nothing: cannot be kept
};

enum Flag : uint32_t {
  kStatic = 1,           // argument: a parameter or buffer, which outlives the step anyway
  kRandom = 2,           // draws from a generator
  kMutates = 4,          // writes to its first operand
  kForwardOnly = 8,      // must run in the forward pass
  kBackwardOnly = 16,    // must run in the backward pass
  kTracedBackward = 32,  // traced while the backward pass was
  kMustKeep = 64,        // the user's checkpoint policy says so
  kMustRepeat = 128,
  kBackwardHook = 256,  // the user's hook on its gradient
};

struct JointNode {
  Source source = Source::call;
  Form form = Form::tensor;
  std::string op;  // "aten.add.Tensor"; "getitem"; "size" for arithmetic on sizes; else unknown
  std::vector<uint32_t> operands;
  int64_t bytes = 0;  // of all its results, at the traced sizes
  uint32_t flags = 0;
  int64_t region = -1;  // number of the checkpointed region it was traced in
  // What one pointwise pass computes it again from, where that is not the call itself: the result of a norm from its
  // input and statistics. Any nodes that do not depend on this one; empty: no other way.
  std::vector<uint32_t> recipe = {};

  // What has to be there for the node to be computed again.
  const std::vector<uint32_t>& repeat_operands() const { return recipe.empty() ? operands : recipe; }
  bool has(Flag flag) const { return flags & flag; }
};

struct JointGraph {
  std::vector<JointNode> nodes;
  std::vector<uint32_t> forward_outputs;
  std::vector<uint32_t> backward_outputs;
};

}  // namespace kerf::partition
