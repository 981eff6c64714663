#pragma once
// Planning of arena offsets: buffers with known sizes and lifetimes are laid out in one block so that buffers alive
// at the same time never overlap.
//
// Best fit in the order of steps, larger buffers of a step first, free ranges joined: n log n. Offsets are multiples
// of kArenaAlignment. A buffer whose size is nearly a multiple of 4 KiB is spaced from its successor by
// kArenaSpacing: streams that lie the same distance from a page start make loads wait for unrelated stores ("4 KiB
// aliasing"; one kernel in measured runs fell to half its speed and less with streams one cache line apart, and
// never with 512 bytes).
#include <cstdint>
#include <span>
#include <vector>

namespace kerf::runtime {

inline constexpr int64_t kArenaAlignment = 64;
inline constexpr int64_t kArenaSpacing = 512;

struct BufferLife {
  int64_t bytes = 0;
  uint32_t first_step = 0;  // first_step > last_step: never used, no memory
  uint32_t last_step = 0;   // included
};

struct ArenaLayout {
  std::vector<int64_t> offsets;  // by buffer; 0 for one without bytes
  int64_t bytes = 0;             // the size of the block: the peak
};

ArenaLayout plan_arena(std::span<const BufferLife> buffers);

// What a buffer of this many bytes takes in the arena, with alignment and spacing.
int64_t arena_bytes(int64_t bytes);

}  // namespace kerf::runtime
