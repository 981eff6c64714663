#include "partition/price.h"

#include <algorithm>

#include "graph/import_aten.h"
#include "partition/max_flow.h"

namespace kerf::partition {

namespace {

using graph::Family;

#define PRICE(name, value, why) [[maybe_unused]] constexpr int64_t k_##name = value;
#include "partition/prices.def"
#undef PRICE

bool is_getitem(const JointNode& node) { return node.op == "getitem" && node.operands.size() == 1; }

bool is_view(const Roles& roles, uint32_t node) { return roles.family[node] == Family::view; }

// A value that exists in memory because a library call or an indexed write makes it.
bool is_made_whole(const JointGraph& graph, const Roles& roles, uint32_t node) {
  if (graph.nodes[node].source != Source::call) return true;
  switch (roles.family[node].value_or(Family::external)) {
    case Family::matmul:
    case Family::external:
    case Family::scatter:
    case Family::reduce:
    case Family::composite:
    case Family::effect: return true;
    default: return false;
  }
}

// Reads its operands from memory: nothing is fused into it.
bool reads_whole(const JointGraph& graph, const Roles& roles, uint32_t node) {
  const JointNode& reader = graph.nodes[node];
  if (reader.source != Source::call || reader.form == Form::size || is_getitem(reader)) return false;
  Family family = roles.family[node].value_or(Family::external);
  return family == Family::matmul || family == Family::external || family == Family::scatter;
}

// The family of a node's work; an element of a tuple has its tuple's.
std::vector<std::optional<Family>> families(const JointGraph& graph) {
  std::vector<std::optional<Family>> families;
  for (const JointNode& node : graph.nodes) {
    if (is_getitem(node)) {
      families.push_back(families[node.operands[0]]);
    } else {
      std::optional<graph::OverloadFacts> facts = graph::facts_of_overload(node.op);
      families.push_back(facts ? std::optional(facts->family) : std::nullopt);
    }
  }
  return families;
}

void mark_forward(const JointGraph& graph, Roles& roles) {
  for (uint32_t output : graph.forward_outputs) {
    roles.forward_output[output] = true;
    roles.in_forward[output] = true;
  }
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const JointNode& node = graph.nodes[i];
    if (roles.needs_tangent[i]) {
      roles.in_forward[i] = false;
      continue;
    }
    if (node.has(kForwardOnly)) roles.in_forward[i] = true;
    if (!roles.in_forward[i]) continue;
    for (uint32_t operand : node.operands) roles.in_forward[operand] = true;
    if (node.has(kMutates) && !node.operands.empty()) roles.written[node.operands[0]] = true;
  }
}

void mark_written(const JointGraph& graph, Roles& roles) {
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const JointNode& node = graph.nodes[i];
    if (node.form == Form::size ||
        std::ranges::none_of(node.operands, [&](uint32_t o) { return roles.written[o]; }))
      continue;
    (is_view(roles, i) ? roles.written : roles.reads_written)[i] = true;
  }
}

// How many library calls lie before a node on the longest way to it, itself included: kernels are made of nodes of
// one stage.
std::vector<uint32_t> stages(const JointGraph& graph, const Roles& roles) {
  std::vector<uint32_t> stages;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    uint32_t stage = 0;
    for (uint32_t operand : graph.nodes[i].operands) stage = std::max(stage, stages[operand]);
    stages.push_back(stage + reads_whole(graph, roles, i));
  }
  return stages;
}

void mark_readers(const JointGraph& graph, Roles& roles) {
  std::vector<uint32_t> stage = stages(graph, roles);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    uint32_t reader = static_cast<uint32_t>(i);
    bool view = is_view(roles, reader);
    bool backward =
        view ? roles.read_whole_backward[i] : reads_whole(graph, roles, reader) && roles.needs_tangent[i];
    for (uint32_t operand : graph.nodes[i].operands) {
      bool later = view ? roles.read_later[i] : roles.in_forward[i] && stage[i] > stage[operand];
      if (later) roles.read_later[operand] = true;
      if (backward) roles.read_whole_backward[operand] = true;
    }
  }
}

int64_t operand_bytes(const JointGraph& graph, const JointNode& node) {
  int64_t sum = 0;
  for (uint32_t operand : node.operands)
    if (graph.nodes[operand].form == Form::tensor) sum += graph.nodes[operand].bytes;
  return sum;
}

// Doing the node's work again, wherever its result goes.
int64_t work_price(const JointGraph& graph, const JointNode& node) {
  std::optional<graph::OverloadFacts> facts = graph::facts_of_overload(node.op);
  if (!facts) return kUnbounded;
  switch (facts->family) {
    case Family::view: return 0;
    case Family::source:
    case Family::pointwise: return node.bytes * (k_element + facts->cost / k_instructions_per_unit);
    case Family::reduce:
    case Family::composite:
    case Family::scan: return operand_bytes(graph, node) * k_reduced + k_repeat_kernel;
    case Family::gather:
    case Family::assemble: return node.bytes * k_moved + k_repeat_kernel;
    case Family::scatter: return node.bytes * k_scattered + k_repeat_kernel;
    case Family::matmul:
    case Family::random:
    case Family::external:
    case Family::effect: return kUnbounded;
  }
  UNREACHABLE("family {}", static_cast<int>(facts->family));
}

// What was drawn or written while the backward pass was traced is not moved to the forward pass.
bool stays_backward(const Roles& roles, const JointNode& node, uint32_t id) {
  return !roles.in_forward[id] && node.has(kTracedBackward) && (node.has(kRandom) || node.has(kMutates));
}

// In the backward pass, after the forward pass has written to an argument.
bool sees_another_value(const JointGraph& graph, const Roles& roles, uint32_t id) {
  const JointNode& node = graph.nodes[id];
  if (node.recipe.empty()) return roles.reads_written[id];
  return std::ranges::any_of(node.recipe, [&](uint32_t o) { return roles.written[o]; });
}

// A view that shows as much as its base, or more: keeping the base is at least as good.
bool shows_all(const JointGraph& graph, const JointNode& view) {
  const JointNode* base = &graph.nodes[view.operands[0]];
  if (is_getitem(view)) base = &graph.nodes[base->operands[0]];
  return view.bytes >= base->bytes;
}

}  // namespace

Roles roles_of(const JointGraph& graph) {
  size_t count = graph.nodes.size();
  std::vector<bool> none(count, false);
  Roles roles{none, none, none, none, none, none, none, families(graph)};
  for (size_t i = 0; i < count; ++i) {
    const JointNode& node = graph.nodes[i];
    roles.needs_tangent[i] =
        node.source == Source::tangent || node.has(kBackwardOnly) ||
        std::ranges::any_of(node.operands, [&](uint32_t o) { return roles.needs_tangent[o]; });
  }
  mark_forward(graph, roles);
  mark_written(graph, roles);
  mark_readers(graph, roles);
  return roles;
}

int64_t keep_price(const JointGraph& graph, const Roles& roles, uint32_t id) {
  const JointNode& node = graph.nodes[id];
  if (node.form == Form::size) return k_keep_value;
  if (node.form == Form::other || node.source == Source::constant || node.has(kMustRepeat)) return kUnbounded;
  if (node.source == Source::argument) return node.has(kStatic) ? 0 : node.bytes * k_keep_held + k_keep_value;
  if (stays_backward(roles, node, id)) return kUnbounded;
  if (roles.forward_output[id]) return node.bytes * k_keep_held + k_keep_value;
  if (is_view(roles, id) && shows_all(graph, node)) return kUnbounded;
  bool in_memory = roles.in_forward[id] && !is_view(roles, id) &&
                   (is_made_whole(graph, roles, id) || roles.read_later[id]);
  return node.bytes * (k_keep + (in_memory ? 0 : k_write)) + k_keep_value;
}

int64_t repeat_price(const JointGraph& graph, const Roles& roles, uint32_t id) {
  const JointNode& node = graph.nodes[id];
  if (node.source == Source::argument) return kUnbounded;
  if (node.source == Source::constant || node.has(kMustRepeat)) return 0;
  if (node.has(kForwardOnly) || node.has(kMustKeep)) return kUnbounded;
  if (stays_backward(roles, node, id)) return 0;
  if (node.recipe.empty() && (node.has(kRandom) || node.has(kMutates))) return kUnbounded;
  if (sees_another_value(graph, roles, id)) return kUnbounded;
  if (!roles.in_forward[id]) return 0;  // not done twice
  int64_t work = node.op == "size" || is_getitem(node) ? 0 : work_price(graph, node);
  if (!node.recipe.empty()) work = node.bytes * k_recipe;
  bool written_out = roles.read_whole_backward[id] && node.form == Form::tensor && !is_view(roles, id);
  return std::min(kUnbounded, work + (written_out ? node.bytes * k_materialize : 0));
}

}  // namespace kerf::partition
