#include "runtime/memory.h"

#include <algorithm>

#include "base/check.h"
#include "runtime/free_ranges.h"

namespace kerf::runtime {

namespace {

constexpr int64_t kPage = 4096;

}  // namespace

int64_t arena_bytes(int64_t bytes) {
  int64_t rounded = (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  int64_t beyond_page = rounded % kPage;
  bool nearly_pages =
      rounded >= kPage && (beyond_page < kArenaSpacing || beyond_page > kPage - kArenaSpacing);
  return nearly_pages ? rounded / kPage * kPage + (beyond_page < kArenaSpacing ? 0 : kPage) + kArenaSpacing
                      : rounded;
}

ArenaLayout plan_arena(std::span<const BufferLife> buffers) {
  ArenaLayout layout;
  layout.offsets.assign(buffers.size(), 0);
  std::vector<uint32_t> by_start;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    CHECK(buffers[i].bytes >= 0, "buffer {} has {} bytes", i, buffers[i].bytes);
    if (buffers[i].bytes > 0 && buffers[i].first_step <= buffers[i].last_step) by_start.push_back(i);
  }
  std::vector<uint32_t> by_end = by_start;
  std::sort(by_start.begin(), by_start.end(), [&](uint32_t a, uint32_t b) {
    if (buffers[a].first_step != buffers[b].first_step) return buffers[a].first_step < buffers[b].first_step;
    if (buffers[a].bytes != buffers[b].bytes) return buffers[a].bytes > buffers[b].bytes;
    return a < b;
  });
  std::stable_sort(by_end.begin(), by_end.end(),
                   [&](uint32_t a, uint32_t b) { return buffers[a].last_step < buffers[b].last_step; });

  FreeRanges ranges;
  auto ending = by_end.begin();
  for (uint32_t i : by_start) {
    for (; ending != by_end.end() && buffers[*ending].last_step < buffers[i].first_step; ++ending)
      ranges.give_back(layout.offsets[*ending], arena_bytes(buffers[*ending].bytes));
    layout.offsets[i] = ranges.take(arena_bytes(buffers[i].bytes));
  }
  layout.bytes = ranges.end();
  return layout;
}

}  // namespace kerf::runtime
