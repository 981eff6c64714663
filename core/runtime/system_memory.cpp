#include "runtime/system_memory.h"

#include <sys/mman.h>

#include <cstdlib>

#include "runtime/memory.h"

namespace kerf::runtime {

void* system_memory(int64_t bytes) {
  constexpr int64_t kHugePage = int64_t{2} << 20;
  const int64_t alignment = bytes >= 2 * kHugePage ? kHugePage : kArenaAlignment;
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<size_t>(alignment), static_cast<size_t>(bytes)) != 0)
    return nullptr;
  // A hint: where huge pages are switched off it fails, and nothing is lost.
  if (alignment == kHugePage) madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return memory;
}

}  // namespace kerf::runtime
