#include "runtime/block_memory.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "base/error.h"
#include "runtime/memory.h"
#include "runtime/system_memory.h"

namespace kerf::runtime {

namespace {

constexpr int64_t kOwnSegmentBytes = int64_t{1} << 18;
constexpr int64_t kSharedSegmentBytes = int64_t{2} << 20;
constexpr int64_t kSizeUnit = int64_t{1} << 16;

// Segments begin at different distances from a page start, for the reason that kArenaSpacing names.
constexpr int64_t kStartPositions = 8;

int64_t round_up(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }
int64_t a_tenth_more(int64_t bytes) { return bytes + bytes / 10; }
int64_t a_quarter_more(int64_t bytes) { return bytes + bytes / 4; }

}  // namespace

BlockMemory::~BlockMemory() {
  for (const auto& segment : segments_) std::free(segment->memory);
}

void* BlockMemory::take(int64_t bytes, void* wanted) {
  CHECK(bytes > 0, "a block of {} bytes", bytes);
  const int64_t spaced = arena_bytes(bytes);
  const bool is_shared = spaced < kOwnSegmentBytes;
  std::lock_guard lock(mutex_);
  if (wanted && region_) {
    const int64_t offset = static_cast<char*>(wanted) - region_->begin;
    if (offset >= 0 && region_->ranges.take_at(offset, spaced)) return enter(region_, offset, spaced);
  }
  Segment* segment = is_shared ? shared_segment(spaced) : empty_segment(spaced);
  if (!segment) {
    const int64_t most_held = a_tenth_more(std::max(most_used_bytes_, used_bytes_ + spaced));
    const int64_t size = is_shared ? kSharedSegmentBytes : round_up(spaced, kSizeUnit);
    if (held_bytes_ + size > most_held) segment = any_segment(spaced);
    if (!segment) segment = add_segment(size, is_shared ? Use::small_blocks : Use::one_block, most_held);
  }
  return enter(segment, segment->ranges.take(spaced), spaced);
}

void* BlockMemory::enter(Segment* segment, int64_t offset, int64_t bytes) {
  void* data = segment->begin + offset;
  if (segment->used_bytes == 0 && segment->use == Use::one_block) empty_.erase({segment->bytes, segment});
  segment->used_bytes += bytes;
  used_bytes_ += bytes;
  most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
  blocks_.emplace(data, Block{segment, bytes});
  return data;
}

void BlockMemory::give_back(void* data) {
  if (!data) return;
  std::lock_guard lock(mutex_);
  auto found = blocks_.find(data);
  CHECK(found != blocks_.end(), "a block that is not in use comes back");
  auto [segment, bytes] = found->second;
  blocks_.erase(found);
  segment->ranges.give_back(static_cast<char*>(data) - segment->begin, bytes);
  segment->used_bytes -= bytes;
  used_bytes_ -= bytes;
  if (segment->used_bytes > 0) return;
  segment->empty_since = now_();
  if (segment->use == Use::one_block) empty_.emplace(segment->bytes, segment);
  remove_idle();
}

Region BlockMemory::region() const {
  std::lock_guard lock(mutex_);
  if (!region_) return {};
  Region region{region_->begin, region_->bytes, {}};
  const char* end = region.begin + region.bytes;
  for (auto block = blocks_.lower_bound(region.begin); block != blocks_.end() && block->first < end; ++block)
    region.blocks.push_back(
        {.offset = static_cast<char*>(block->first) - region.begin, .bytes = block->second.bytes});
  return region;
}

Region BlockMemory::reserve(int64_t bytes) {
  std::lock_guard lock(mutex_);
  const int64_t wanted = most_wanted(bytes);
  if (!region_ || region_->used_bytes == 0) {
    for (int64_t size : {round_up(wanted, kSizeUnit), round_up(bytes, kSizeUnit)}) {
      const bool fits =
          region_ && region_->bytes >= size && region_->bytes <= a_quarter_more(wanted) + kSizeUnit;
      if (!fits && !may_be_region(size, bytes)) continue;
      if (!fits) make_region(size);
      break;
    }
  }
  return region_ ? Region{region_->begin, region_->bytes, {}} : Region{};
}

int64_t BlockMemory::most_wanted(int64_t bytes) {
  const Clock::time_point now = now_();
  if (now - region_wanted_since_ > kIdleTime) {
    region_wanted_before_ = std::exchange(region_wanted_, 0);
    region_wanted_since_ = now;
  }
  region_wanted_ = std::max(region_wanted_, bytes);
  return std::max(region_wanted_, region_wanted_before_);
}

// Whether no more than a quarter above what was in use at once, or is with these bytes, is held with such a region.
bool BlockMemory::may_be_region(int64_t size, int64_t bytes) const {
  int64_t held = size;
  for (const auto& segment : segments_)
    if (segment->used_bytes > 0) held += segment->bytes;
  return held <= a_quarter_more(std::max(most_used_bytes_, used_bytes_ + bytes)) + kSizeUnit;
}

// What was made for single blocks is to lie in the region from now on.
void BlockMemory::make_region(int64_t size) {
  remove_empty_until(0);
  region_ = add_segment(size, Use::region, size);
}

void BlockMemory::trim() {
  std::lock_guard lock(mutex_);
  remove_empty_until(0);
  most_used_bytes_ = used_bytes_;
}

int64_t BlockMemory::held_bytes() const {
  std::lock_guard lock(mutex_);
  return held_bytes_;
}

int64_t BlockMemory::used_bytes() const {
  std::lock_guard lock(mutex_);
  return used_bytes_;
}

// The smallest range that holds a small block, in a segment that is in use rather than in an empty one.
BlockMemory::Segment* BlockMemory::shared_segment(int64_t bytes) {
  Segment* best = nullptr;
  int64_t best_size = 0;
  bool best_is_used = false;
  for (const auto& segment : segments_) {
    if (segment->use != Use::small_blocks) continue;
    const int64_t size = segment->ranges.fitting(bytes);
    const bool is_used = segment->used_bytes > 0;
    if (size < 0 || (best && (is_used == best_is_used ? size >= best_size : best_is_used))) continue;
    best = segment.get();
    best_size = size;
    best_is_used = is_used;
  }
  return best;
}

// An empty one of nearly this size.
BlockMemory::Segment* BlockMemory::empty_segment(int64_t bytes) {
  auto found = empty_.lower_bound({bytes, nullptr});
  bool fits = found != empty_.end() && found->first <= a_tenth_more(bytes) + kSizeUnit;
  return fits ? found->second : nullptr;
}

// The smallest range of all that holds the block.
BlockMemory::Segment* BlockMemory::any_segment(int64_t bytes) {
  Segment* best = nullptr;
  int64_t best_size = 0;
  for (const auto& segment : segments_) {
    const int64_t size = segment->ranges.fitting(bytes);
    if (size < 0 || (best && size >= best_size)) continue;
    best = segment.get();
    best_size = size;
  }
  return best;
}

BlockMemory::Segment* BlockMemory::add_segment(int64_t size, Use use, int64_t most_held) {
  remove_empty_until(most_held - size);
  const int64_t start = segments_made_++ % kStartPositions * kArenaSpacing;
  void* memory = system_memory(start + size);
  if (!memory) {
    remove_empty_until(0);
    memory = system_memory(start + size);
  }
  if (!memory) throw RuntimeError(fmt::format("out of memory: a block of {} bytes", size));
  auto segment = std::make_unique<Segment>();
  segment->memory = memory;
  segment->begin = static_cast<char*>(memory) + start;
  segment->bytes = size;
  segment->use = use;
  segment->ranges = FreeRanges(size);
  if (use == Use::one_block) empty_.emplace(size, segment.get());
  held_bytes_ += size;
  segments_.push_back(std::move(segment));
  return segments_.back().get();
}

// Removes segments, those empty for longest first, until no more than `held_bytes` are held or no segment is empty.
void BlockMemory::remove_empty_until(int64_t held_bytes) {
  while (held_bytes_ > held_bytes) {
    Segment* oldest = nullptr;
    for (const auto& segment : segments_)
      if (segment->used_bytes == 0 && (!oldest || segment->empty_since < oldest->empty_since))
        oldest = segment.get();
    if (!oldest) return;
    remove(oldest);
  }
}

void BlockMemory::remove_idle() {
  const Clock::time_point now = now_();
  if (now - idle_checked_ < kIdleTime / 10) return;
  idle_checked_ = now;
  std::vector<Segment*> idle;
  for (const auto& segment : segments_)
    if (segment->used_bytes == 0 && now - segment->empty_since > kIdleTime) idle.push_back(segment.get());
  for (Segment* segment : idle) remove(segment);
}

void BlockMemory::remove(Segment* segment) {
  held_bytes_ -= segment->bytes;
  if (segment == region_) region_ = nullptr;
  std::free(segment->memory);
  empty_.erase({segment->bytes, segment});
  std::erase_if(segments_, [segment](const auto& one) { return one.get() == segment; });
}

BlockMemory& block_memory() {
  static BlockMemory* memory = [] {
    auto* made = new BlockMemory;
    pthread_atfork([] { block_memory().mutex().lock(); }, [] { block_memory().mutex().unlock(); },
                   [] { block_memory().mutex().unlock(); });
    return made;
  }();
  return *memory;
}

}  // namespace kerf::runtime
