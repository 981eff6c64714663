#include "runtime/placement.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace kerf::runtime {

namespace {

// Rounds of improvement; fewer for many blocks, so that a call finds its places in a few milliseconds.
constexpr size_t kMostRounds = 32;
constexpr size_t kMostWork = size_t{1} << 22;

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

struct Layout {
  std::vector<int64_t> offsets;  // by block
  int64_t extent = 0;
  size_t highest = 0;  // position in the order of the last block that extended it; 0 if none did
};

Layout place_in_order(std::span<const PlacedBlock> blocks, std::span<const PlacedBlock> there,
                      std::span<const size_t> order) {
  Placed placed(there);
  Layout layout{std::vector<int64_t>(blocks.size()), 0, 0};
  for (size_t position = 0; position < order.size(); ++position) {
    const int64_t before = placed.extent();
    layout.offsets[order[position]] = placed.add(blocks[order[position]]);
    if (placed.extent() > before) layout.highest = position;
  }
  layout.extent = placed.extent();
  return layout;
}

// The block that lies highest is placed earlier, and all are placed again.
Layout improved(std::span<const PlacedBlock> blocks, std::span<const PlacedBlock> there,
                std::vector<size_t> order, Layout best) {
  const size_t work = blocks.size() * (blocks.size() + there.size()) + 1;
  size_t highest = best.highest;
  for (size_t round = std::min(kMostRounds, kMostWork / work); round > 0 && highest > 0; --round) {
    const auto begin = order.begin();
    const auto from = begin + static_cast<std::ptrdiff_t>(highest);
    std::rotate(begin + static_cast<std::ptrdiff_t>(highest / 2), from, from + 1);
    Layout layout = place_in_order(blocks, there, order);
    highest = layout.highest;
    if (layout.extent < best.extent) best = std::move(layout);
  }
  return best;
}

}  // namespace

int64_t place(std::vector<PlacedBlock>& blocks, std::span<const PlacedBlock> there) {
  std::vector<size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::ranges::stable_sort(by_size, {},
                           [&](size_t i) { return std::pair(-blocks[i].bytes, blocks[i].first_step); });
  std::vector<size_t> staying_first = by_size;
  std::ranges::stable_sort(staying_first, {}, [&](size_t i) {
    const bool stays = blocks[i].last_step == kStays;
    return std::pair(!stays, stays ? blocks[i].first_step : 0);
  });
  Layout first = place_in_order(blocks, there, staying_first);
  Layout second = place_in_order(blocks, there, by_size);
  const Layout layout = second.extent < first.extent
                            ? improved(blocks, there, std::move(by_size), std::move(second))
                            : std::move(first);
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i].offset = layout.offsets[i];
  return layout.extent;
}

}  // namespace kerf::runtime
