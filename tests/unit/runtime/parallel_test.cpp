#include "runtime/cpu/parallel.h"

#include "runtime/executor.h"  // before doctest, whose CHECK is the one meant below

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "fake_host.h"
#include "plan_builder.h"

using namespace kerf;
using namespace kerf::runtime;
using namespace kerf::runtime::testing;

namespace {

// In place of torch: the OpenMP runtime must be in the process before the first parallel launch of any test.
void* const open_mp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL);

// Four threads on any machine, for the length of a test.
class FourThreads {
 public:
  FourThreads() : old_(cpu::max_threads()) { set(4); }
  ~FourThreads() { set(old_); }

 private:
  static void set(int threads) {
    reinterpret_cast<void (*)(int)>(dlsym(open_mp, "omp_set_num_threads"))(threads);
  }
  int old_;
};

struct Ranges {
  std::mutex mutex;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  std::vector<std::thread::id> threads;
};

void note(void* context, int64_t begin, int64_t end) {
  auto* r = static_cast<Ranges*>(context);
  std::lock_guard lock(r->mutex);
  r->ranges.emplace_back(begin, end);
  r->threads.push_back(std::this_thread::get_id());
}

std::vector<std::pair<int64_t, int64_t>> split(int64_t grid, int64_t work) {
  Ranges r;
  cpu::parallel_ranges(grid, work, note, &r);
  std::ranges::sort(r.ranges);
  return r.ranges;
}

void split_inside(void* context, int64_t begin, int64_t end) {
  if (begin == 0) *static_cast<size_t*>(context) = split(100, 1 << 30).size();
  (void)end;
}

constexpr int64_t kRow = 8192;

// Rows of a matrix through scratch memory of one row: out = in reversed within each row.
void reverse_rows(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end, void* scratch,
                  target::KernelError*) {
  const float* in = static_cast<const float*>(buffers[0]);
  float* out = static_cast<float*>(buffers[1]);
  float* row = static_cast<float*>(scratch);
  bool aligned = reinterpret_cast<uintptr_t>(scratch) % 64 == 0;
  int64_t n = sizes[0];
  for (int64_t i = begin; i < end; ++i) {
    std::reverse_copy(in + i * n, in + (i + 1) * n, row);
    for (int64_t j = 0; j < n; ++j) out[i * n + j] = aligned ? row[j] : -1.0f;
  }
}

void fail_everywhere(void* const*, const int64_t*, int64_t begin, int64_t, void*,
                     target::KernelError* error) {
  *error = {target::KernelError::kIndex, 1000 + begin, 2000 + begin, 0};
}

}  // namespace

TEST_CASE("a grid is split into contiguous ranges, one per thread") {
  REQUIRE(open_mp);
  FourThreads four;
  CHECK(cpu::max_threads() == 4);
  using Parts = std::vector<std::pair<int64_t, int64_t>>;
  CHECK(split(10, 1 << 30) == Parts({{0, 3}, {3, 6}, {6, 8}, {8, 10}}));
  CHECK(split(3, 1 << 30) == Parts({{0, 1}, {1, 2}, {2, 3}}));
  CHECK(split(1, 1 << 30) == Parts({{0, 1}}));
  CHECK(split(0, 1 << 30).empty());
  CHECK(split(-5, 1 << 30).empty());
  int64_t large = int64_t{1} << 62;
  CHECK(split(large, 1 << 30).back() == std::pair(large / 4 * 3, large));
}

TEST_CASE("small work stays on the calling thread") {
  FourThreads four;
  CHECK(split(100, 0).size() == 1);
  CHECK(split(100, 2 * cpu::kWorkPerThread - 1).size() == 1);
  CHECK(split(100, 2 * cpu::kWorkPerThread).size() == 2);
  CHECK(split(100, 3 * cpu::kWorkPerThread).size() == 3);
  CHECK(split(100, 300 * cpu::kWorkPerThread).size() == 4);
  Ranges r;
  cpu::parallel_ranges(100, 0, note, &r);
  CHECK(r.threads[0] == std::this_thread::get_id());
}

TEST_CASE("inside a parallel region everything is serial") {
  FourThreads four;
  size_t parts = 0;
  cpu::parallel_ranges(4, 1 << 30, split_inside, &parts);
  CHECK(parts == 1);
}

TEST_CASE("a launch over threads, each with scratch memory") {
  FourThreads four;
  PlanBuilder b;
  b.size("m", 0, 0);
  BufferIndex x = b.input({"m", std::to_string(kRow)});
  BufferIndex y = b.output({"m", std::to_string(kRow)});
  b.launch(reverse_rows, {x, y}, {std::to_string(kRow)}, "m", "8192*m", kRow * 4 - 20);
  Executor executor(b.finish());
  FakeHost host;
  for (int64_t m : {1, 7, 64}) {
    FakeTensor* in = host.make(DType::f32, {m, kRow});
    std::iota(in->as<float>(), in->as<float>() + m * kRow, 0.0f);
    std::vector<CallInput> inputs = {{in->ref(), 0}};
    auto result = executor.run(host, inputs);
    const float* out = static_cast<FakeTensor*>(result[0].tensor)->as<float>();
    bool right = true;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < kRow; ++j)
        right &= out[i * kRow + j] == static_cast<float>(i * kRow + kRow - 1 - j);
    CHECK(right);
  }
}

TEST_CASE("of several failing threads the first range is reported, with its own bound") {
  FourThreads four;
  PlanBuilder b;
  b.launch(fail_everywhere, {}, {}, "100", "1000000");
  Executor executor(b.finish());
  FakeHost host;
  for (int round = 0; round < 50; ++round)
    CHECK_THROWS_WITH_AS(
        executor.run(host, {}),
        "index 1000 is out of bounds for a dimension of size 2000 (in kernel k0, from model.py:3)",
        IndexError);
}
