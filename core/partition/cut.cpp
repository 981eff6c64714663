#include "partition/cut.h"

#include <algorithm>
#include <utility>

#include "partition/max_flow.h"
#include "partition/price.h"

namespace kerf::partition {

namespace {

// Regions repeat what they compute from what they were given, so the values between two regions are kept; else the
// second would repeat the first. A value whose gradient has a hook at the end of a region is kept as well: the hook
// runs before the region is repeated.
JointGraph with_region_ends_kept(JointGraph graph) {
  std::vector<uint8_t> ends(graph.nodes.size(), 0), repeated_reader(graph.nodes.size(), 0);
  for (const JointNode& reader : graph.nodes) {
    if (!reader.has(kMustRepeat)) continue;
    for (uint32_t operand : reader.operands) {
      int64_t region = graph.nodes[operand].region;
      repeated_reader[operand] = 1;
      if (region >= 0 && reader.region > region) ends[operand] = 1;
    }
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    JointNode& node = graph.nodes[i];
    if (!node.has(kMustRepeat)) continue;
    if (ends[i] || (node.has(kBackwardHook) && !repeated_reader[i]))
      node.flags = (node.flags & ~uint32_t{kMustRepeat}) | kMustKeep;
  }
  return graph;
}

// The values that gradients read, and results of the backward pass that need no gradient.
std::vector<bool> needed_backward(const JointGraph& graph, const Roles& roles) {
  std::vector<bool> needed(graph.nodes.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (roles.needs_tangent[i])
      for (uint32_t operand : graph.nodes[i].operands)
        if (!roles.needs_tangent[operand]) needed[operand] = true;
  for (uint32_t output : graph.backward_outputs)
    if (!roles.needs_tangent[output]) needed[output] = true;
  return needed;
}

// What is needed, and all that it can be computed again from.
std::vector<bool> leads_to(const JointGraph& graph, std::vector<bool> needed) {
  std::vector<uint32_t> open;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i)
    if (needed[i]) open.push_back(i);
  while (!open.empty()) {
    uint32_t node = open.back();
    open.pop_back();
    for (uint32_t operand : graph.nodes[node].repeat_operands()) {
      if (needed[operand]) continue;
      needed[operand] = true;
      open.push_back(operand);
    }
  }
  return needed;
}

constexpr uint32_t kStart = 0, kEnd = 1;

// Vertices 2 + 2*i and 3 + 2*i are the `in` and `out` of node i.
constexpr uint32_t in_of(size_t node) { return static_cast<uint32_t>(2 + 2 * node); }
constexpr uint32_t out_of(size_t node) { return static_cast<uint32_t>(3 + 2 * node); }

FlowNetwork make_network(const JointGraph& graph, const Roles& roles, const std::vector<bool>& needed,
                         const std::vector<bool>& involved) {
  FlowNetwork network;
  for (size_t i = 0; i < 2 + 2 * graph.nodes.size(); ++i) network.add_vertex();
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    if (!involved[i]) continue;
    const JointNode& node = graph.nodes[i];
    if (int64_t repeat = repeat_price(graph, roles, i)) network.add_edge(kStart, in_of(i), repeat);
    network.add_edge(in_of(i), out_of(i), keep_price(graph, roles, i));
    if (needed[i]) network.add_edge(out_of(i), kEnd, kUnbounded);
    for (uint32_t operand : node.repeat_operands()) network.add_edge(out_of(operand), in_of(i), kUnbounded);
  }
  return network;
}

}  // namespace

Result<Cut> cut_joint_graph(const JointGraph& given) {
  JointGraph graph = with_region_ends_kept(given);
  Roles roles = roles_of(graph);
  std::vector<bool> needed = needed_backward(graph, roles);
  std::vector<bool> involved = leads_to(graph, needed);
  FlowNetwork network = make_network(graph, roles, needed, involved);
  if (network.run(kStart, kEnd) >= kUnbounded)
    return Unsupported{"a value that the backward pass needs can be neither kept nor computed again"};
  std::vector<bool> right = network.sink_side(kEnd);
  Cut cut;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const JointNode& node = graph.nodes[i];
    if (roles.in_forward[i]) cut.forward.push_back(i);
    if (!involved[i]) continue;
    if (right[in_of(i)]) {
      if (node.source == Source::call && (roles.in_forward[i] || !node.recipe.empty()))
        cut.repeated.push_back(i);
    } else if (right[out_of(i)]) {
      cut.kept.push_back(i);
      if (!node.has(kStatic)) cut.kept_bytes += node.bytes;
    }
  }
  return cut;
}

}  // namespace kerf::partition
