// Random joint graphs: what the cut says can be run, no other choice is cheaper on small graphs, and on larger ones it
// is no dearer than keeping what gradients read.
#include "partition/cut.h"
#include "partition/max_flow.h"
#include "partition/price.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>

#include <doctest/doctest.h>

using namespace kerf::partition;

namespace {

constexpr const char* kOps[] = {"aten.mm.default",       "aten.exp.default",    "aten.mul.Tensor",
                                "aten.view.default",     "aten.select.int",     "aten.sum.dim_IntList",
                                "aten._to_copy.default", "aten.gather.default", "aten.scatter_add.default",
                                "aten.full.default",     "unknown.op",          "aten._softmax.default"};

JointGraph random_joint(std::mt19937& random, uint32_t forward_calls) {
  auto below = [&](size_t limit) { return static_cast<uint32_t>(random() % limit); };
  JointGraph graph;
  auto size = [&] { return int64_t{1} << (6 + below(14)); };
  for (uint32_t i = 0; i < 2; ++i)
    graph.nodes.push_back(
        {.source = Source::argument, .bytes = size(), .flags = below(2) ? uint32_t{kStatic} : 0});
  graph.nodes.push_back({.source = Source::tangent, .bytes = size()});
  for (uint32_t i = 0; i < forward_calls; ++i) {
    JointNode node{.op = kOps[below(std::size(kOps))], .bytes = size()};
    for (uint32_t k = 0; k < 1 + below(2); ++k) {
      uint32_t operand = below(graph.nodes.size());
      node.operands.push_back(operand == 2 ? 0 : operand);
    }
    if (below(16) == 0) node.flags = kMustKeep;
    if (below(16) == 0) node.flags = kMustRepeat;
    if (below(16) == 0) node.flags = kRandom;
    if (below(8) == 0) node.recipe = {below(2), node.operands[0]};
    graph.nodes.push_back(std::move(node));
  }
  uint32_t last = static_cast<uint32_t>(graph.nodes.size() - 1), gradient = 2;
  for (uint32_t i = 0; i < 1 + forward_calls / 3; ++i) {
    uint32_t read = last - below(std::min(last + 1, forward_calls));
    graph.nodes.push_back({.op = below(2) ? "aten.mm.default" : "aten.mul.Tensor",
                           .operands = {gradient, read},
                           .bytes = size()});
    gradient = static_cast<uint32_t>(graph.nodes.size() - 1);
  }
  graph.forward_outputs = {last};
  graph.backward_outputs = {gradient};
  return graph;
}

enum class Choice : uint8_t { absent, kept, repeated };

// What a choice costs; nothing if it cannot be run.
std::optional<int64_t> price_of(const JointGraph& graph, const Roles& roles,
                                const std::vector<Choice>& choices) {
  int64_t sum = 0;
  auto there = [&](uint32_t node) { return roles.needs_tangent[node] || choices[node] != Choice::absent; };
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const JointNode& node = graph.nodes[i];
    if (choices[i] == Choice::absent && !roles.needs_tangent[i]) continue;
    if (choices[i] == Choice::kept) {
      sum += keep_price(graph, roles, i);
    } else {
      if (!roles.needs_tangent[i]) sum += repeat_price(graph, roles, i);
      if (!std::ranges::all_of(node.repeat_operands(), there)) return std::nullopt;
    }
    if (sum >= kUnbounded) return std::nullopt;
  }
  return sum;
}

std::vector<Choice> choices_of(const JointGraph& graph, const Cut& cut) {
  std::vector<Choice> choices(graph.nodes.size(), Choice::absent);
  for (uint32_t i : cut.kept) choices[i] = Choice::kept;
  for (uint32_t i : cut.repeated) choices[i] = Choice::repeated;
  return choices;
}

// Adds what is computed in the backward pass alone, which a Cut does not list: it is free.
void add_backward_only(const JointGraph& graph, const Roles& roles, std::vector<Choice>& choices) {
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    if (!roles.needs_tangent[i] && choices[i] != Choice::repeated) continue;
    for (uint32_t operand : graph.nodes[i].repeat_operands())
      if (!roles.needs_tangent[operand] && choices[operand] == Choice::absent && !roles.in_forward[operand])
        choices[operand] = Choice::repeated;
  }
}

// The lowest price over all choices for the nodes that gradients may read.
std::optional<int64_t> least_price(const JointGraph& graph, const Roles& roles) {
  std::vector<uint32_t> open;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i)
    if (!roles.needs_tangent[i]) open.push_back(i);
  std::vector<Choice> choices(graph.nodes.size(), Choice::absent);
  std::optional<int64_t> least;
  size_t count = 1;
  for (size_t i = 0; i < open.size(); ++i) count *= 3;
  for (size_t code = 0; code < count; ++code) {
    size_t rest = code;
    for (uint32_t node : open) choices[node] = static_cast<Choice>(rest % 3), rest /= 3;
    std::optional<int64_t> price = price_of(graph, roles, choices);
    if (price && (!least || *price < *least)) least = price;
  }
  return least;
}

// As autograd does: what gradients read is kept, views by their base.
std::vector<Choice> keep_what_is_read(const JointGraph& graph, const Roles& roles) {
  std::vector<Choice> choices(graph.nodes.size(), Choice::absent);
  std::vector<bool> needed(graph.nodes.size(), false);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    uint32_t id = static_cast<uint32_t>(i);
    if (!roles.needs_tangent[i]) {
      if (!needed[i]) continue;
      bool keeps = keep_price(graph, roles, id) < kUnbounded;
      choices[i] = keeps ? Choice::kept : Choice::repeated;
      if (keeps) continue;
    }
    for (uint32_t operand : graph.nodes[i].repeat_operands()) needed[operand] = true;
  }
  return choices;
}

template <class Check>
void for_seeds(uint32_t forward_calls, const Check& check) {
  const char* one = std::getenv("KERF_SEED");
  const char* many = std::getenv("KERF_SEEDS");
  uint32_t first = one ? static_cast<uint32_t>(std::atoi(one)) : 0;
  uint32_t count = one ? 1 : many ? static_cast<uint32_t>(std::atoi(many)) : 300;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    JointGraph graph = random_joint(random, forward_calls);
    check(graph, roles_of(graph), cut_joint_graph(graph));
  }
}

int64_t price_of_cut(const JointGraph& graph, const Roles& roles, const Cut& cut) {
  std::vector<Choice> choices = choices_of(graph, cut);
  add_backward_only(graph, roles, choices);
  std::optional<int64_t> price = price_of(graph, roles, choices);
  REQUIRE(price);  // it can be run
  return *price;
}

}  // namespace

TEST_CASE("small graphs: no choice is cheaper") {
  for_seeds(6, [](const JointGraph& graph, const Roles& roles, const kerf::Result<Cut>& cut) {
    std::optional<int64_t> least = least_price(graph, roles);
    REQUIRE(bool(cut) == least.has_value());
    if (least) CHECK(price_of_cut(graph, roles, *cut) == *least);
  });
}

TEST_CASE("large graphs: no dearer than keeping what gradients read") {
  for_seeds(300, [](const JointGraph& graph, const Roles& roles, const kerf::Result<Cut>& cut) {
    std::optional<int64_t> all_kept = price_of(graph, roles, keep_what_is_read(graph, roles));
    if (cut) {
      int64_t price = price_of_cut(graph, roles, *cut);
      if (all_kept) CHECK(price <= *all_kept);
    } else {
      CHECK(!all_kept);
    }
  });
}
