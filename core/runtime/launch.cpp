#include "runtime/launch.h"

#include <fmt/ranges.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>

#include "base/check.h"
#include "runtime/cpu/parallel.h"
#include "runtime/memory.h"

namespace kerf::runtime {

namespace {

struct FreeMemory {
  void operator()(void* data) const { std::free(data); }
};

// This thread's scratch memory; grows to the largest request and stays for the thread's life. Null when the system
// has none left.
void* thread_scratch(int64_t bytes) {
  thread_local std::unique_ptr<void, FreeMemory> memory;
  thread_local int64_t capacity = 0;
  if (bytes > capacity) {
    int64_t rounded = (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    memory.reset();
    memory.reset(std::aligned_alloc(kArenaAlignment, static_cast<size_t>(rounded)));
    capacity = memory ? rounded : 0;
  }
  return memory.get();
}

struct Launch {
  const target::CpuArtifact& artifact;
  const int64_t* sizes;
  void* const* pointers;
  // Of the failing range that begins first, so that the report does not depend on which thread was faster.
  std::mutex mutex = {};
  target::KernelError error = {};
  int64_t error_begin = std::numeric_limits<int64_t>::max();
  bool out_of_memory = false;

  void run(int64_t begin, int64_t end) {
    void* scratch = artifact.scratch_bytes > 0 ? thread_scratch(artifact.scratch_bytes) : nullptr;
    if (artifact.scratch_bytes > 0 && !scratch) {
      std::lock_guard lock(mutex);
      out_of_memory = true;
      return;
    }
    target::KernelError own;  // a shared one would mix the fields of two failing threads
    target::run(artifact, pointers, sizes, begin, end, scratch, &own);
    if (own.code == target::KernelError::kNone) return;
    std::lock_guard lock(mutex);
    if (begin < error_begin) {
      error = own;
      error_begin = begin;
    }
  }
};

[[noreturn]] void fail(const LaunchStep& step, const target::KernelError& error) {
  std::string where = fmt::format("in kernel {}", step.name);
  if (!step.sources.empty()) where += fmt::format(", from {}", fmt::join(step.sources, "; "));
  if (error.code == target::KernelError::kIndex)
    throw IndexError(fmt::format("index {} is out of bounds for a dimension of size {} ({})", error.index,
                                 error.bound, where));
  if (error.code == target::KernelError::kDivision)
    throw RuntimeError(fmt::format("integer division or modulo by zero ({})", where));
  UNREACHABLE("kernel {} reports the unknown error {}", step.name, error.code);
}

}  // namespace

void run_launch(const target::CpuArtifact& artifact, const LaunchStep& step, const LaunchShape& shape,
                void* const* pointers) {
  Launch launch{artifact, shape.sizes.data(), pointers};
  cpu::parallel_ranges(
      shape.grid, shape.work,
      [](void* context, int64_t begin, int64_t end) { static_cast<Launch*>(context)->run(begin, end); },
      &launch);
  if (launch.out_of_memory)
    throw RuntimeError(fmt::format("out of memory: {} bytes of scratch for a thread of kernel {}",
                                   artifact.scratch_bytes, step.name));
  if (launch.error.code != target::KernelError::kNone) fail(step, launch.error);
}

}  // namespace kerf::runtime
