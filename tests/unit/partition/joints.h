#pragma once
// Hand-made joint graphs: a node a line.
#include <algorithm>
#include <string>
#include <vector>

#include "partition/cut.h"

namespace kerf::partition::testing {

using Nodes = std::vector<uint32_t>;

struct Joint {
  JointGraph graph;

  uint32_t add(JointNode node) {
    graph.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(graph.nodes.size() - 1);
  }
  uint32_t parameter(int64_t bytes) {
    return add({.source = Source::argument, .bytes = bytes, .flags = kStatic});
  }
  uint32_t input(int64_t bytes) { return add({.source = Source::argument, .bytes = bytes}); }
  uint32_t tangent(int64_t bytes) { return add({.source = Source::tangent, .bytes = bytes}); }
  uint32_t call(std::string op, Nodes operands, int64_t bytes, uint32_t flags = 0, int64_t region = -1) {
    return add({.op = std::move(op),
                .operands = std::move(operands),
                .bytes = bytes,
                .flags = flags,
                .region = region});
  }
  // A call with several results, and result `i` of it.
  uint32_t tuple(std::string op, Nodes operands, int64_t bytes, uint32_t flags = 0) {
    return add({.form = Form::other,
                .op = std::move(op),
                .operands = std::move(operands),
                .bytes = bytes,
                .flags = flags});
  }
  uint32_t item(uint32_t of, int64_t bytes) { return call("getitem", {of}, bytes); }
  uint32_t size(Nodes operands) {
    return add({.form = Form::size, .op = "size", .operands = std::move(operands), .bytes = 8});
  }
  Joint& returns(Nodes forward, Nodes backward) {
    graph.forward_outputs = std::move(forward);
    graph.backward_outputs = std::move(backward);
    return *this;
  }

  Cut cut() const { return *cut_joint_graph(graph); }
  // Kept nodes besides parameters.
  Nodes kept() const {
    Nodes kept = cut().kept;
    std::erase_if(kept, [&](uint32_t i) { return graph.nodes[i].has(kStatic); });
    return kept;
  }
};

}  // namespace kerf::partition::testing
