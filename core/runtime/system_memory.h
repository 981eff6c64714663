#pragma once
// Memory from the system for arenas and segments of blocks.
#include <cstdint>

namespace kerf::runtime {

// Aligned to 64; from 4 MiB on to pages or huge ones, and offered to the kernel as huge pages. Null if there is no memory; std::free
// gives it back.
void* system_memory(int64_t bytes);

}  // namespace kerf::runtime
