#pragma once
// Memory for large blocks: results that the user gets, and temporaries of a call that are worth a life of their own.
//
// A new page costs about as much as writing it several times, and a program calls its graphs again and again with the
// same sizes. So blocks lie in segments that stay when they are empty: what one call gave back, the next one takes, and
// gradients land where the activations were.
//
// One segment is the region: a call knows all its blocks and asks for each at a place of its own choice
// (call_placement.h). The region is made as large as calls of the last while wanted it, at a time when it is empty; within
// a quarter above what was in use at once. What does not fit there, or finds its place taken, is placed as it is asked
// for: a block of 256 KiB and more has a segment of its own, which later serves blocks of nearly its size; smaller ones
// share segments, and are joined with free neighbours when they come back.
//
// What is held is bounded by what was needed at once. A new segment outside the region that would lead beyond the most
// bytes that were ever in use, and a tenth, is made only if the block fits nowhere else, in parts of larger segments
// too; then empty segments go first, those empty for longest. A segment that stays empty for kIdleTime goes with a later block.
//
// On traces of training steps of eleven models the region takes 1.00 to 1.11 of the bytes in use at their peak (t5 1.21), and
// no pages are new. Without it, 1.05 to 1.3 were held.
//
// Thread-safe. Blocks may outlive the interpreter (a tensor in a static variable), so the process's object is never
// destroyed.
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "runtime/free_ranges.h"
#include "runtime/placement.h"

namespace kerf::runtime {

// Smaller temporaries are planned into one arena and smaller results come from the host: for them malloc's own lists
// suffice.
inline constexpr int64_t kBlockBytes = int64_t{1} << 17;

// The segment in which calls place their blocks ahead (placement.h).
struct Region {
  char* begin = nullptr;  // null: there is none
  int64_t bytes = 0;
  std::vector<PlacedBlock> blocks;  // by offset
};

class BlockMemory {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kIdleTime{10};

  BlockMemory() = default;
  BlockMemory(const BlockMemory&) = delete;
  BlockMemory& operator=(const BlockMemory&) = delete;
  ~BlockMemory();

  // `bytes` > 0, aligned to 64, uninitialised; at `wanted` where that lies in the region and is free. Throws RuntimeError
  // when the system has no memory.
  void* take(int64_t bytes, void* wanted = nullptr);
  // Null is ignored.
  void give_back(void* data);
  // The region as it is: the blocks in it, with no ends.
  Region region() const;
  // For a call that places its blocks in this many bytes of the region: makes the region that large if it is empty, and
  // no larger than what is held may be. Without its blocks.
  Region reserve(int64_t bytes);
  // Gives all empty segments to the system.
  void trim();

  int64_t held_bytes() const;
  int64_t used_bytes() const;

  // For tests of idle segments.
  void set_clock(std::function<Clock::time_point()> now) { now_ = std::move(now); }

  // Held by the thread that forks, so that the child finds the lists whole.
  std::mutex& mutex() { return mutex_; }

 private:
  enum class Use : uint8_t { one_block, small_blocks, region };
  struct Segment {
    void* memory = nullptr;  // of malloc
    char* begin = nullptr;   // of the first range
    int64_t bytes = 0;
    Use use = Use::one_block;
    int64_t used_bytes = 0;
    Clock::time_point empty_since;
    FreeRanges ranges;
  };
  struct Block {
    Segment* segment;
    int64_t bytes;
  };

  void* enter(Segment* segment, int64_t offset, int64_t bytes);
  int64_t most_wanted(int64_t bytes);
  bool may_be_region(int64_t size, int64_t bytes) const;
  void make_region(int64_t size);
  Segment* shared_segment(int64_t bytes);
  Segment* empty_segment(int64_t bytes);
  Segment* any_segment(int64_t bytes);
  Segment* add_segment(int64_t size, Use use, int64_t most_held);
  void remove_empty_until(int64_t held_bytes);
  void remove_idle();
  void remove(Segment* segment);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Segment>> segments_;
  Segment* region_ = nullptr;
  int64_t region_wanted_ = 0,
          region_wanted_before_ = 0;  // at most, in this period of kIdleTime and in the last one
  Clock::time_point region_wanted_since_{};
  std::set<std::pair<int64_t, Segment*>> empty_;  // those made for one block, by size
  std::map<void*, Block> blocks_;                 // in use
  int64_t held_bytes_ = 0;
  int64_t used_bytes_ = 0;
  int64_t most_used_bytes_ = 0;
  int64_t segments_made_ = 0;
  Clock::time_point idle_checked_{};
  std::function<Clock::time_point()> now_ = &Clock::now;
};

// The process's.
BlockMemory& block_memory();

}  // namespace kerf::runtime
