#pragma once
// Work split over the threads of the OpenMP runtime that is already in the process (torch's), so that there is
// never a second pool and `torch.set_num_threads` holds for us too. The runtime is found by name; without one, and
// inside somebody else's parallel region, everything runs on the calling thread.
#include <cstdint>

namespace kerf::runtime::cpu {

// A part of the work: [begin, end).
using RangeFunction = void (*)(void* context, int64_t begin, int64_t end);

// Runs `function` over [0, grid): one contiguous range per thread, in the order of threads. `work` is the number of
// elements touched; below kWorkPerThread a thread is not worth waking. The function must not throw.
void parallel_ranges(int64_t grid, int64_t work, RangeFunction function, void* context);

// Threads that a large enough call would use now.
int max_threads();

// Opening and closing a parallel region costs 1 to 3 us while the team still spins and 10 us and more once it
// sleeps; a core streams about 2000 elements in a microsecond. Torch splits at the same size (its grain is 32768).
inline constexpr int64_t kWorkPerThread = 16384;

}  // namespace kerf::runtime::cpu
