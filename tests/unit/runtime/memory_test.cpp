#include "runtime/memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace kerf::runtime;

namespace {

// The most bytes alive at one step: no layout can be smaller.
int64_t most_live(const std::vector<BufferLife>& buffers) {
  uint32_t steps = 0;
  for (const BufferLife& b : buffers) steps = std::max(steps, b.last_step + 1);
  std::vector<int64_t> live(steps + 1);
  for (const BufferLife& b : buffers) {
    if (b.first_step > b.last_step || b.bytes == 0) continue;
    live[b.first_step] += arena_bytes(b.bytes);
    live[b.last_step + 1] -= arena_bytes(b.bytes);
  }
  int64_t most = 0, now = 0;
  for (int64_t change : live) most = std::max(most, now += change);
  return most;
}

void check_layout(const std::vector<BufferLife>& buffers, const ArenaLayout& layout) {
  REQUIRE(layout.offsets.size() == buffers.size());
  int64_t sum = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const BufferLife& a = buffers[i];
    CHECK(layout.offsets[i] % kArenaAlignment == 0);
    if (a.bytes == 0 || a.first_step > a.last_step) continue;
    sum += arena_bytes(a.bytes);
    CHECK(layout.offsets[i] + a.bytes <= layout.bytes);
    for (size_t j = 0; j < i; ++j) {
      const BufferLife& b = buffers[j];
      bool together = b.bytes > 0 && a.first_step <= b.last_step && b.first_step <= a.last_step;
      bool apart = layout.offsets[i] + a.bytes <= layout.offsets[j] ||
                   layout.offsets[j] + b.bytes <= layout.offsets[i];
      if (together && !apart) FAIL("buffers " << i << " and " << j << " overlap");
    }
  }
  CHECK(layout.bytes <= sum);
  CHECK(layout.bytes >= most_live(buffers));
}

}  // namespace

TEST_CASE("buffers that follow each other share memory") {
  std::vector<BufferLife> chain = {{1024, 0, 1}, {1024, 1, 2}, {1024, 2, 3}, {1024, 3, 4}};
  ArenaLayout layout = plan_arena(chain);
  check_layout(chain, layout);
  CHECK(layout.bytes == 2048);
  CHECK(layout.offsets[2] == layout.offsets[0]);
}

TEST_CASE("buffers without bytes or uses take nothing") {
  CHECK(plan_arena({}).bytes == 0);
  std::vector<BufferLife> buffers = {{0, 0, 5}, {64, 3, 2}, {1, 0, 0}};
  ArenaLayout layout = plan_arena(buffers);
  CHECK(layout.bytes == 64);
  CHECK(layout.offsets[2] == 0);
}

TEST_CASE("neighbouring ranges are joined when freed") {
  std::vector<BufferLife> buffers = {{64, 0, 0}, {64, 0, 0}, {64, 0, 1}, {128, 1, 1}};
  CHECK(plan_arena(buffers).bytes == 192);
}

TEST_CASE("buffers of whole pages start at different places of a page") {
  std::vector<BufferLife> buffers(3, BufferLife{1 << 16, 0, 0});
  ArenaLayout layout = plan_arena(buffers);
  std::sort(layout.offsets.begin(), layout.offsets.end());
  CHECK(layout.offsets[1] % 4096 == 512);
  CHECK(layout.offsets[2] % 4096 == 1024);
  CHECK(arena_bytes(8192 - 64) == 8192 + 512);
  CHECK(arena_bytes(4096 + 512) == 4096 + 512);
  CHECK(arena_bytes(4000) == 4032);
  CHECK(arena_bytes(1) == 64);
}

TEST_CASE("random lifetimes: live buffers never overlap") {
  std::mt19937 random(20251129);
  for (int round = 0; round < 300; ++round) {
    uint32_t steps = 1 + random() % 60;
    std::vector<BufferLife> buffers(random() % 120);
    for (BufferLife& b : buffers) {
      b.bytes = random() % 5 == 0 ? 0 : int64_t{1} << (random() % 20);
      b.bytes += b.bytes ? random() % 100 : 0;
      b.first_step = random() % steps;
      uint32_t length = random() % (random() % 4 == 0 ? 60 : 4);
      b.last_step = std::min(steps - 1, b.first_step + length);
    }
    check_layout(buffers, plan_arena(buffers));
  }
}

TEST_CASE("a training step: activations live from forward to backward, temporaries briefly") {
  std::vector<BufferLife> buffers;
  constexpr uint32_t kLayers = 200;
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    int64_t bytes = 4096 * (1 + layer % 7);
    uint32_t backward = 2 * kLayers - 1 - layer;
    buffers.push_back({bytes, layer, backward});
    buffers.push_back({3 * bytes, layer, layer});
    buffers.push_back({4 * bytes, backward, backward});
    buffers.push_back({bytes, backward, backward + 1});
  }
  ArenaLayout layout = plan_arena(buffers);
  check_layout(buffers, layout);
  CHECK(layout.bytes <= most_live(buffers) * 115 / 100);
}
