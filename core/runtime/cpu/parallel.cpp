#include "runtime/cpu/parallel.h"

#include <dlfcn.h>

#include <algorithm>

namespace kerf::runtime::cpu {

namespace {

// The entry points of the GNU OpenMP ABI; LLVM's and Intel's runtimes export the same names.
struct OpenMp {
  using Body = void (*)(void*);
  void (*parallel)(Body body, void* data, unsigned threads, unsigned flags) = nullptr;
  int (*max_threads)() = nullptr;
  int (*num_threads)() = nullptr;
  int (*thread_num)() = nullptr;
  int (*in_parallel)() = nullptr;
  bool found = false;
};

OpenMp find_open_mp() {
  OpenMp mp;
  auto find = [](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(RTLD_DEFAULT, name));
    return function != nullptr;
  };
  mp.found = find(mp.parallel, "GOMP_parallel") && find(mp.max_threads, "omp_get_max_threads") &&
             find(mp.num_threads, "omp_get_num_threads") && find(mp.thread_num, "omp_get_thread_num") &&
             find(mp.in_parallel, "omp_in_parallel");
  return mp;
}

const OpenMp& open_mp() {
  static const OpenMp mp = find_open_mp();
  return mp;
}

struct Region {
  RangeFunction function;
  void* context;
  int64_t grid;
};

// The runtime may give fewer threads than asked for, so the split follows the team that came.
void run_part(void* data) {
  const Region& region = *static_cast<const Region*>(data);
  int64_t threads = open_mp().num_threads();
  int64_t thread = open_mp().thread_num();
  int64_t share = region.grid / threads;
  int64_t larger = region.grid % threads;  // the first `larger` threads take one more
  int64_t begin = thread * share + std::min(thread, larger);
  int64_t end = begin + share + (thread < larger ? 1 : 0);
  if (begin < end) region.function(region.context, begin, end);
}

}  // namespace

int max_threads() {
  const OpenMp& mp = open_mp();
  return mp.found && !mp.in_parallel() ? mp.max_threads() : 1;
}

void parallel_ranges(int64_t grid, int64_t work, RangeFunction function, void* context) {
  if (grid <= 0) return;
  int64_t threads = std::min(grid, work / kWorkPerThread);
  if (threads >= 2) threads = std::min<int64_t>(threads, max_threads());
  if (threads < 2) {
    function(context, 0, grid);
    return;
  }
  Region region{function, context, grid};
  open_mp().parallel(run_part, &region, static_cast<unsigned>(threads), 0);
}

}  // namespace kerf::runtime::cpu
