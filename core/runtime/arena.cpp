#include "runtime/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "runtime/system_memory.h"

namespace kerf::runtime {

namespace {

ArenaBlock allocate(int64_t bytes) {
  void* data = system_memory(bytes);
  if (!data) throw RuntimeError(fmt::format("out of memory: an arena of {} bytes for temporaries", bytes));
  return {data, bytes};
}

}  // namespace

ArenaCache::~ArenaCache() {
  for (ArenaBlock block : idle_) std::free(block.data);
}

ArenaBlock ArenaCache::take(int64_t bytes) {
  if (bytes == 0) return {};
  ArenaBlock too_small;
  {
    std::lock_guard lock(mutex_);
    auto best = idle_.end();
    for (auto block = idle_.begin(); block != idle_.end(); ++block)
      if (block->capacity >= bytes && (best == idle_.end() || block->capacity < best->capacity)) best = block;
    if (best != idle_.end()) {
      ArenaBlock block = *best;
      idle_.erase(best);
      return block;
    }
    // The new block serves every call that this one served.
    if (!idle_.empty()) {
      too_small = idle_.back();
      idle_.pop_back();
    }
  }
  std::free(too_small.data);
  return allocate(bytes);
}

void ArenaCache::give_back(ArenaBlock block) {
  if (!block.data) return;
  std::lock_guard lock(mutex_);
  idle_.push_back(block);
}

std::shared_ptr<ArenaCache> shared_arenas() {
  static std::mutex mutex;
  static std::weak_ptr<ArenaCache> shared;
  std::lock_guard lock(mutex);
  std::shared_ptr<ArenaCache> arenas = shared.lock();
  if (!arenas) shared = arenas = std::make_shared<ArenaCache>();
  return arenas;
}

}  // namespace kerf::runtime
