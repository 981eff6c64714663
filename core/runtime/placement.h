#pragma once
// Where the blocks of one call lie in a range of memory, when all of them are known: their sizes, when each begins and
// ends, and what lies in the range already.
//
// Placed one by one as they are asked for (best fit), blocks that stay break up the room of those that come and go: swin's
// training step then needs a quarter more than what is alive at its peak. With all known, the order of placing is free. Two
// are tried, and the smaller extent is taken: blocks that stay after the call first, side by side as they begin, the rest
// by size (a forward pass: what it saved ends from behind in the backward pass, and leaves whole room); or all by size (a
// backward pass: gradients lie where activations have ended). Each takes the smallest gap that no block of its time uses,
// the lowest of equal ones. In the second order the block that lies highest is placed earlier, for some rounds.
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace kerf::runtime {

inline constexpr uint32_t kStays = std::numeric_limits<uint32_t>::max();

struct PlacedBlock {
  int64_t offset = 0;
  int64_t bytes = 0;
  uint32_t first_step = 0;
  uint32_t last_step = kStays;  // included; kStays: not within the call
  bool operator==(const PlacedBlock&) const = default;
};

// Sets the offsets of `blocks`; returns the end of the last one, of those that are there too.
int64_t place(std::vector<PlacedBlock>& blocks, std::span<const PlacedBlock> there);

}  // namespace kerf::runtime
