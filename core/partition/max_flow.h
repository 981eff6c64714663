#pragma once
// Maximum flow and minimum cut of a directed network with whole capacities (Dinic's algorithm: shortest paths in
// phases, each edge looked at once a phase). The result depends on the order of edges only, so it is the same in
// every run. kUnbounded is the capacity of what may never be cut.
#include <cstdint>
#include <limits>
#include <vector>

namespace kerf::partition {

inline constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max() / 4;

class FlowNetwork {
 public:
  uint32_t add_vertex();
  void add_edge(uint32_t from, uint32_t to, int64_t capacity);

  // The flow from `source` to `sink`; at least kUnbounded if no cut separates them. Call once.
  int64_t run(uint32_t source, uint32_t sink);

  // After run: for each vertex whether it is on the sink's side of the minimum cut nearest to the sink.
  std::vector<bool> sink_side(uint32_t sink) const;

 private:
  struct Edge {
    uint32_t to;
    int64_t residual;  // of edge e; the reverse edge is e ^ 1
  };

  bool measure_distances(uint32_t source, uint32_t sink);
  int64_t push_one_path(uint32_t source, uint32_t sink);
  void step_back(std::vector<uint32_t>& path);

  std::vector<Edge> edges_;
  std::vector<std::vector<uint32_t>> leaving_;  // vertex -> its edges, reverse ones among them
  std::vector<uint32_t> distance_;              // to the sink, in this phase
  std::vector<uint32_t> next_;  // vertex -> first edge in leaving_ not yet used up in this phase
};

}  // namespace kerf::partition
