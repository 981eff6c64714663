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

// Measured on two cores: a parallel region costs 0.7 us while its team still spins (much more once it sleeps), and a
// light pointwise kernel touches 8000 elements in a microsecond. Two threads break even at 16384 elements and save a
// quarter of the time at 32768.
inline constexpr int64_t kWorkPerThread = 16384;

}  // namespace kerf::runtime::cpu
