#include "runtime/huge_pages.h"

#include <sys/mman.h>

namespace kerf::runtime {

void prefer_huge_pages(void* data, int64_t bytes) {
  auto begin = reinterpret_cast<uintptr_t>(data);
  uintptr_t end = (begin + static_cast<uintptr_t>(bytes)) & ~uintptr_t{kHugePage - 1};
  begin = (begin + kHugePage - 1) & ~uintptr_t{kHugePage - 1};
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace kerf::runtime
