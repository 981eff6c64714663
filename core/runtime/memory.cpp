#include "runtime/memory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "base/check.h"

namespace kerf::runtime {

namespace {

constexpr int64_t kPage = 4096;

// The free ranges of a block that grows at its end. No two of them touch.
class FreeRanges {
 public:
  int64_t take(int64_t bytes) {
    auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) return grow(bytes);
    auto [size, offset] = *fit;
    erase(by_offset_.find(offset));
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }

  void give_back(int64_t offset, int64_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = erase(next);
    }
    if (next != by_offset_.begin()) {
      auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        bytes += previous->second;
        erase(previous);
      }
    }
    insert(offset, bytes);
  }

  int64_t end() const { return end_; }

 private:
  using ByOffset = std::map<int64_t, int64_t>;

  // A free range at the end is too small, else it would have been taken: it is extended.
  int64_t grow(int64_t bytes) {
    int64_t offset = end_;
    if (!by_offset_.empty()) {
      auto last = std::prev(by_offset_.end());
      if (last->first + last->second == end_) {
        offset = last->first;
        erase(last);
      }
    }
    end_ = offset + bytes;
    return offset;
  }

  void insert(int64_t offset, int64_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }

  ByOffset::iterator erase(ByOffset::iterator range) {
    by_size_.erase({range->second, range->first});
    return by_offset_.erase(range);
  }

  ByOffset by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t end_ = 0;
};

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
