#pragma once
// Fresh memory costs a page fault for every 4 KiB that is written first, more time than writing them takes: 32 MiB
// of results need 8,192 faults in small pages and 16 in huge ones.
#include <cstdint>

namespace kerf::runtime {

inline constexpr int64_t kHugePage = int64_t{2} << 20;

// Asks the system for huge pages wherever [data, data + bytes) covers one, before it is written for the first time.
// A hint: where huge pages are switched off, nothing changes.
void prefer_huge_pages(void* data, int64_t bytes);

}  // namespace kerf::runtime
