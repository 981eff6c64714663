#include "runtime/placement.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace kerf::runtime {

namespace {

bool is_before(const PlacedBlock& a, const PlacedBlock& b) { return a.offset < b.offset; }

// What is placed, by offset.
class Placed {
 public:
  explicit Placed(std::span<const PlacedBlock> there) : blocks_(there.begin(), there.end()) {
    std::ranges::sort(blocks_, is_before);
    for (const PlacedBlock& block : blocks_) extent_ = std::max(extent_, block.offset + block.bytes);
  }

  int64_t add(PlacedBlock block) {
    block.offset = smallest_gap(block);
    blocks_.insert(std::ranges::upper_bound(blocks_, block, is_before), block);
    extent_ = std::max(extent_, block.offset + block.bytes);
    return block.offset;
  }

  int64_t extent() const { return extent_; }

 private:
  int64_t smallest_gap(const PlacedBlock& block) const {
    int64_t end = 0, best = -1, best_size = std::numeric_limits<int64_t>::max();
    for (const PlacedBlock& other : blocks_) {
      if (other.first_step > block.last_step || block.first_step > other.last_step) continue;
      const int64_t size = other.offset - end;
      if (size >= block.bytes && size < best_size) {
        best = end;
        best_size = size;
      }
      end = std::max(end, other.offset + other.bytes);
    }
    return best >= 0 ? best : end;
  }

  std::vector<PlacedBlock> blocks_;
  int64_t extent_ = 0;
};

int64_t place_in_order(std::vector<PlacedBlock>& blocks, std::span<const PlacedBlock> there,
                       const std::vector<size_t>& order) {
  Placed placed(there);
  for (size_t i : order) blocks[i].offset = placed.add(blocks[i]);
  return placed.extent();
}

}  // namespace

int64_t place(std::vector<PlacedBlock>& blocks, std::span<const PlacedBlock> there) {
  std::vector<size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::ranges::stable_sort(by_size, {}, [&](size_t i) { return std::pair(-blocks[i].bytes, blocks[i].first_step); });
  std::vector<size_t> staying_first = by_size;
  std::ranges::stable_sort(staying_first, {}, [&](size_t i) {
    const bool stays = blocks[i].last_step == kStays;
    return std::pair(!stays, stays ? blocks[i].first_step : 0);
  });
  const int64_t extent = place_in_order(blocks, there, staying_first);
  std::vector<PlacedBlock> other = blocks;
  const int64_t other_extent = place_in_order(other, there, by_size);
  if (other_extent >= extent) return extent;
  blocks = std::move(other);
  return other_extent;
}

}  // namespace kerf::runtime
