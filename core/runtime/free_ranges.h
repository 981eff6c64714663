#pragma once
// The free ranges of a block of memory, by position and by size. No two of them touch.
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace kerf::runtime {

class FreeRanges {
 public:
  FreeRanges() = default;
  // A block of this many bytes, all free.
  explicit FreeRanges(int64_t bytes) : end_(bytes) { insert(0, bytes); }

  // The size of the smallest range that holds `bytes`; -1 if none does.
  int64_t fitting(int64_t bytes) const;
  // The offset of `bytes` in the smallest range that holds them; the block grows at its end if none does.
  int64_t take(int64_t bytes);
  // These bytes, if all of them are free.
  bool take_at(int64_t offset, int64_t bytes);
  void give_back(int64_t offset, int64_t bytes);
  // The size of the block.
  int64_t end() const { return end_; }

 private:
  using ByOffset = std::map<int64_t, int64_t>;

  int64_t grow(int64_t bytes);
  void insert(int64_t offset, int64_t bytes);
  ByOffset::iterator erase(ByOffset::iterator range);

  ByOffset by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t end_ = 0;
};

}  // namespace kerf::runtime
