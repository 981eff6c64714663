#pragma once
// Arena memory between calls: blocks are taken for the length of a call and given back, so that a loop of calls
// touches the same warm memory and allocates nothing. Thread-safe; concurrent calls get blocks of their own.
// Memory is returned to the system only by the destructor or when a larger block replaces a smaller one.
//
// All executors of a process share one: a backward pass runs in the block that its forward pass left.
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace kerf::runtime {

struct ArenaBlock {
  void* data = nullptr;
  int64_t capacity = 0;
};

class ArenaCache {
 public:
  ArenaCache() = default;
  ~ArenaCache();
  ArenaCache(const ArenaCache&) = delete;
  ArenaCache& operator=(const ArenaCache&) = delete;

  // A block of at least `bytes`, aligned to 64; the smallest idle one that is large enough. An empty block for 0.
  // Throws RuntimeError when the system has no memory.
  ArenaBlock take(int64_t bytes);
  void give_back(ArenaBlock block);

 private:
  std::mutex mutex_;
  std::vector<ArenaBlock> idle_;
};

// The process's; it ends with the last one who holds it.
std::shared_ptr<ArenaCache> shared_arenas();

}  // namespace kerf::runtime
