#include "runtime/system_memory.h"

#include <sys/mman.h>

#include <cstdlib>

#include "runtime/memory.h"

namespace kerf::runtime {

void* system_memory(int64_t bytes) {
  constexpr int64_t kPage = 4096, kHugePage = int64_t{2} << 20;
  // Of what is aligned, malloc keeps up to a huge page behind: too much where few huge pages are cut at the ends.
  const bool is_huge = bytes >= 2 * kHugePage;
  const int64_t alignment = !is_huge ? kArenaAlignment : bytes < 8 * kHugePage ? kHugePage : kPage;
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<size_t>(alignment), static_cast<size_t>(bytes)) != 0)
    return nullptr;
  // A hint: where huge pages are switched off it fails, and nothing is lost.
  if (is_huge) madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return memory;
}

}  // namespace kerf::runtime
