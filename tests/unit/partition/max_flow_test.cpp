// Maximum flow: textbook networks, and networks small enough to try every cut.
#include "partition/max_flow.h"

#include <doctest/doctest.h>

#include <random>

using namespace kerf::partition;

namespace {

struct Link {
  uint32_t from, to;
  int64_t capacity;
};

FlowNetwork network_of(uint32_t vertices, const std::vector<Link>& links) {
  FlowNetwork network;
  for (uint32_t i = 0; i < vertices; ++i) network.add_vertex();
  for (const Link& link : links) network.add_edge(link.from, link.to, link.capacity);
  return network;
}

// The price of a cut: edges from the source's side to the sink's.
int64_t price(const std::vector<Link>& links, const std::vector<bool>& sink_side) {
  int64_t sum = 0;
  for (const Link& link : links)
    if (!sink_side[link.from] && sink_side[link.to]) sum += link.capacity;
  return sum;
}

int64_t cheapest_cut(uint32_t vertices, const std::vector<Link>& links) {
  int64_t best = std::numeric_limits<int64_t>::max();
  for (uint32_t subset = 0; subset < (1U << vertices); ++subset) {
    std::vector<bool> sink_side(vertices);
    for (uint32_t i = 0; i < vertices; ++i) sink_side[i] = (subset >> i) & 1;
    if (!sink_side[0] && sink_side[vertices - 1]) best = std::min(best, price(links, sink_side));
  }
  return best;
}

}  // namespace

TEST_CASE("a bottleneck in the middle") {
  std::vector<Link> links = {{0, 1, 10}, {0, 2, 5}, {1, 2, 15}, {1, 3, 4}, {2, 3, 8}};
  FlowNetwork network = network_of(4, links);
  CHECK(network.run(0, 3) == 12);
  CHECK(price(links, network.sink_side(3)) == 12);
}

TEST_CASE("among cheapest cuts the one nearest to the sink") {
  FlowNetwork network = network_of(4, {{0, 1, 3}, {1, 2, 3}, {2, 3, 3}});
  CHECK(network.run(0, 3) == 3);
  CHECK(network.sink_side(3) == std::vector<bool>{false, false, false, true});
}

TEST_CASE("flow that must be taken back") {
  FlowNetwork network =
      network_of(6, {{0, 1, 1}, {0, 2, 1}, {1, 3, 1}, {2, 3, 1}, {1, 4, 1}, {3, 5, 1}, {4, 5, 1}});
  CHECK(network.run(0, 5) == 2);
}

TEST_CASE("no way to the sink, and no way to cut") {
  FlowNetwork apart = network_of(3, {{0, 1, 7}});
  CHECK(apart.run(0, 2) == 0);
  CHECK(apart.sink_side(2) == std::vector<bool>{false, false, true});
  FlowNetwork unbounded = network_of(3, {{0, 1, kUnbounded}, {1, 2, kUnbounded}, {0, 2, 5}});
  CHECK(unbounded.run(0, 2) >= kUnbounded);
}

TEST_CASE("small random networks: the flow is the cheapest cut") {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
    uint32_t vertices = 3 + below(6);
    std::vector<Link> links;
    for (uint32_t i = 0; i < vertices * 3; ++i) links.push_back({below(vertices), below(vertices), below(9)});
    FlowNetwork network = network_of(vertices, links);
    int64_t flow = network.run(0, vertices - 1);
    CHECK(flow == cheapest_cut(vertices, links));
    CHECK(flow == price(links, network.sink_side(vertices - 1)));
  }
}
