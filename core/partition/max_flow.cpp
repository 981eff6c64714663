#include "partition/max_flow.h"

#include <algorithm>

#include "base/check.h"

namespace kerf::partition {

namespace {

constexpr uint32_t kFar = std::numeric_limits<uint32_t>::max();

}  // namespace

uint32_t FlowNetwork::add_vertex() {
  leaving_.emplace_back();
  return static_cast<uint32_t>(leaving_.size() - 1);
}

void FlowNetwork::add_edge(uint32_t from, uint32_t to, int64_t capacity) {
  CHECK(from < leaving_.size() && to < leaving_.size(), "edge {} -> {} of {} vertices", from, to,
        leaving_.size());
  CHECK(capacity >= 0, "capacity {}", capacity);
  leaving_[from].push_back(static_cast<uint32_t>(edges_.size()));
  edges_.push_back({to, std::min(capacity, kUnbounded)});
  leaving_[to].push_back(static_cast<uint32_t>(edges_.size()));
  edges_.push_back({from, 0});
}

// Distances to the sink over edges with something left; false when the source is cut off. The walk stops at the
// source's layer: vertices beyond it lie on no shortest path.
bool FlowNetwork::measure_distances(uint32_t source, uint32_t sink) {
  distance_.assign(leaving_.size(), kFar);
  distance_[sink] = 0;
  std::vector<uint32_t> queue = {sink};
  for (size_t i = 0; i < queue.size(); ++i) {
    uint32_t at = queue[i];
    if (distance_[source] != kFar && distance_[at] >= distance_[source]) break;
    for (uint32_t e : leaving_[at]) {
      uint32_t from = edges_[e].to;
      if (edges_[e ^ 1].residual == 0 || distance_[from] != kFar) continue;
      distance_[from] = distance_[at] + 1;
      queue.push_back(from);
    }
  }
  return distance_[source] != kFar;
}

// A dead end: its vertex is left out for the rest of the phase.
void FlowNetwork::step_back(std::vector<uint32_t>& path) {
  uint32_t edge = path.back();
  path.pop_back();
  distance_[edges_[edge].to] = kFar;
}

int64_t FlowNetwork::push_one_path(uint32_t source, uint32_t sink) {
  std::vector<uint32_t> path;
  uint32_t at = source;
  while (at != sink) {
    uint32_t& next = next_[at];
    while (next < leaving_[at].size()) {
      const Edge& edge = edges_[leaving_[at][next]];
      if (edge.residual > 0 && distance_[edge.to] != kFar && distance_[edge.to] + 1 == distance_[at]) break;
      ++next;
    }
    if (next < leaving_[at].size()) {
      path.push_back(leaving_[at][next]);
      at = edges_[path.back()].to;
    } else if (path.empty()) {
      return 0;
    } else {
      at = edges_[path.back() ^ 1].to;
      step_back(path);
    }
  }
  int64_t amount = kUnbounded;
  for (uint32_t e : path) amount = std::min(amount, edges_[e].residual);
  for (uint32_t e : path) {
    if (edges_[e].residual < kUnbounded) edges_[e].residual -= amount;
    if (edges_[e ^ 1].residual < kUnbounded) edges_[e ^ 1].residual += amount;
  }
  return amount;
}

int64_t FlowNetwork::run(uint32_t source, uint32_t sink) {
  int64_t total = 0;
  while (measure_distances(source, sink)) {
    next_.assign(leaving_.size(), 0);
    while (int64_t amount = push_one_path(source, sink)) {
      total += amount;
      if (amount >= kUnbounded) return kUnbounded;
    }
  }
  return total;
}

std::vector<bool> FlowNetwork::sink_side(uint32_t sink) const {
  std::vector<bool> reaches(leaving_.size(), false);
  reaches[sink] = true;
  std::vector<uint32_t> stack = {sink};
  while (!stack.empty()) {
    uint32_t at = stack.back();
    stack.pop_back();
    for (uint32_t e : leaving_[at]) {
      uint32_t from = edges_[e].to;
      if (reaches[from] || edges_[e ^ 1].residual == 0) continue;
      reaches[from] = true;
      stack.push_back(from);
    }
  }
  return reaches;
}

}  // namespace kerf::partition
