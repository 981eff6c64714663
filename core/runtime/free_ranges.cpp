#include "runtime/free_ranges.h"

#include <iterator>

namespace kerf::runtime {

int64_t FreeRanges::fitting(int64_t bytes) const {
  auto fit = by_size_.lower_bound({bytes, 0});
  return fit == by_size_.end() ? -1 : fit->first;
}

int64_t FreeRanges::take(int64_t bytes) {
  auto fit = by_size_.lower_bound({bytes, 0});
  if (fit == by_size_.end()) return grow(bytes);
  auto [size, offset] = *fit;
  erase(by_offset_.find(offset));
  if (size > bytes) insert(offset + bytes, size - bytes);
  return offset;
}

bool FreeRanges::take_at(int64_t offset, int64_t bytes) {
  auto range = by_offset_.upper_bound(offset);
  if (range == by_offset_.begin()) return false;
  --range;
  const auto [begin, size] = *range;
  const int64_t behind = begin + size - (offset + bytes);
  if (behind < 0) return false;
  erase(range);
  if (begin < offset) insert(begin, offset - begin);
  if (behind > 0) insert(offset + bytes, behind);
  return true;
}

void FreeRanges::give_back(int64_t offset, int64_t bytes) {
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

// A free range at the end is too small, else it would have been taken: it is extended.
int64_t FreeRanges::grow(int64_t bytes) {
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

void FreeRanges::insert(int64_t offset, int64_t bytes) {
  by_offset_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

FreeRanges::ByOffset::iterator FreeRanges::erase(ByOffset::iterator range) {
  by_size_.erase({range->second, range->first});
  return by_offset_.erase(range);
}

}  // namespace kerf::runtime
