// What compiled kernels reach: milliseconds to compile, and GB/s (bytes read and written by the algorithm) beside a
// plain copy of the same memory, in cache and from memory, on one thread; loops that compute much also beside the same written
// by hand with intrinsics. For reading, not a test:
//
//   cpu_kernels [lanes] [filter]        one line per kernel and size; KERF_CPU=avx2 for the narrow code
#include <fmt/format.h>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "by_hand.h"
#include "codegen/compile.h"
#include "loop/parse.h"

namespace {

using namespace kerf;

struct Benchmark {
  const char* name;
  int bytes;  // per element, read and written
  std::string text;
  by_hand::Rows by_hand = nullptr;
};

// Rows of 1024; `n` rows. LANES stands for the vector width.
const std::string kGelu = R"(kernel k(x: f32[n, 1024], out y: f32[n, 1024]) given n
  for r < n grid
    for i < 1024 vector LANES
      %0 = load x[1024*r + i]
      %1 = const f32 0.70710678
      %2 = mul %0, %1
      %3 = erf %2
      %4 = const f32 1.0
      %5 = add %3, %4
      %6 = const f32 0.5
      %7 = mul %0, %6
      %8 = mul %7, %5
)";
const Benchmark kBenchmarks[] = {
    {"light chain", 8, R"(kernel k(x: f32[n, 1024], out y: f32[n, 1024]) given n
  for r < n grid
    for i < 1024 vector LANES
      %0 = load x[1024*r + i]
      %1 = const f32 1.5
      %2 = const f32 0.25
      %3 = mul %0, %1
      %4 = add %3, %2
      %5 = const f32 0.0
      %6 = maximum %4, %5
      %7 = mul %6, %1
      store y[1024*r + i], %7
)"},
    {"gelu (erf)", 8, kGelu + R"(      store y[1024*r + i], %8
)",
     by_hand::gelu},
    {"gelu, dropout", 8, kGelu + R"(      %9 = const i64 7
      %10 = index 1024*r + i
      %11 = random_uniform %9, %10
      %12 = const f32 0.9
      %13 = lt %11, %12
      %14 = cast f32 %13
      %15 = mul %8, %14
      %16 = const f32 1.1111112
      %17 = mul %15, %16
      store y[1024*r + i], %17
)",
     by_hand::gelu_dropout},
    {"sum of exp", 4, R"(kernel k(x: f32[n, 1024], out y: f32[n]) given n
  for r < n grid
    %1 = reduce max for i < 1024 vector 64
      %0 = load x[1024*r + i]
      yield %0
    %5 = reduce sum for j < 1024 vector LANES
      %2 = load x[1024*r + j]
      %3 = sub %2, %1
      %4 = exp %3
      yield %4
    %6 = add %1, %5
    store y[r], %6
)",
     by_hand::log_sum_exp},
    {"gelu (tanh)", 8, R"(kernel k(x: f32[n, 1024], out y: f32[n, 1024]) given n
  for r < n grid
    for i < 1024 vector LANES
      %0 = load x[1024*r + i]
      %1 = const f32 0.044715
      %2 = mul %0, %0
      %3 = mul %2, %0
      %4 = mul %3, %1
      %5 = add %0, %4
      %6 = const f32 0.79788456
      %7 = mul %5, %6
      %8 = tanh %7
      %9 = const f32 1.0
      %10 = add %8, %9
      %11 = const f32 0.5
      %12 = mul %0, %11
      %13 = mul %12, %10
      store y[1024*r + i], %13
)"},
    {"silu bf16", 4, R"(kernel k(x: bf16[n, 1024], out y: bf16[n, 1024]) given n
  for r < n grid
    for i < 1024 vector LANES
      %0 = load x[1024*r + i]
      %1 = cast f32 %0
      %2 = sigmoid %1
      %3 = mul %1, %2
      %4 = cast bf16 %3
      store y[1024*r + i], %4
)"},
    {"softmax", 8, R"(kernel k(x: f32[n, 1024], out y: f32[n, 1024]) given n
  for r < n grid
    %1 = reduce max for i < 1024 vector LANES
      %0 = load x[1024*r + i]
      yield %0
    %5 = reduce sum for j < 1024 vector LANES
      %2 = load x[1024*r + j]
      %3 = sub %2, %1
      %4 = exp %3
      yield %4
    for k < 1024 vector LANES
      %6 = load x[1024*r + k]
      %7 = sub %6, %1
      %8 = exp %7
      %9 = div %8, %5
      store y[1024*r + k], %9
)"},
    {"layer norm", 8, R"(kernel k(x: f32[n, 1024], g: f32[1024], b: f32[1024], out y: f32[n, 1024]) given n
  for r < n grid
    %1 = reduce sum for i < 1024 vector LANES
      %0 = load x[1024*r + i]
      yield %0
    %2 = const f32 0.0009765625
    %3 = mul %1, %2
    %7 = reduce sum for j < 1024 vector LANES
      %4 = load x[1024*r + j]
      %5 = sub %4, %3
      %6 = mul %5, %5
      yield %6
    %8 = mul %7, %2
    %9 = const f32 0.00001
    %10 = add %8, %9
    %11 = rsqrt %10
    for k < 1024 vector LANES
      %12 = load x[1024*r + k]
      %13 = sub %12, %3
      %14 = mul %13, %11
      %15 = load g[k]
      %16 = load b[k]
      %17 = mul %14, %15
      %18 = add %17, %16
      store y[1024*r + k], %18
)"},
    {"row sum", 4, R"(kernel k(x: f32[n, 1024], out y: f32[n]) given n
  for r < n grid
    %1 = reduce sum for i < 1024 vector LANES
      %0 = load x[1024*r + i]
      yield %0
    store y[r], %1
)"},
    {"flat dynamic gelu", 8, R"(kernel k(x: f32[1024*n], out y: f32[1024*n]) given n
  for o < (1024*n + 4095) // 4096 grid
    for i < min(4096, 1024*n - 4096*o) vector LANES
      %0 = load x[4096*o + i]
      %1 = const f32 0.70710678
      %2 = mul %0, %1
      %3 = erf %2
      %4 = const f32 1.0
      %5 = add %3, %4
      %6 = mul %0, %5
      store y[4096*o + i], %6
)"},
};

double seconds(const std::function<void()>& work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Processor time of this thread: compiling is measured on busy machines too.
double processor_seconds(const std::function<void()>& work) {
  auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  double start = now();
  work();
  return now() - start;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// GB/s of the median of some runs, each long enough to be timed.
double rate(double bytes, const std::function<void()>& work) {
  work();
  int repeats = std::max(1, static_cast<int>(2e-3 / std::max(seconds(work), 1e-7)));
  std::vector<double> runs;
  for (int i = 0; i < 11; ++i) {
    runs.push_back(seconds([&] {
      for (int j = 0; j < repeats; ++j) work();
    }));
  }
  return bytes * repeats / median(runs) / 1e9;
}

std::string with_lanes(std::string text, int lanes) {
  for (size_t at = text.find("LANES"); at != std::string::npos; at = text.find("LANES")) {
    text.replace(at, 5, std::to_string(lanes));
  }
  return text;
}

void run(const Benchmark& benchmark, int lanes, const target::CpuTarget& target, bool streaming) {
  sym::Context context;
  loop::Kernel kernel = loop::parse_kernel(with_lanes(benchmark.text, lanes), context);
  for (loop::Buffer& buffer : kernel.buffers)
    buffer.non_temporal = streaming && buffer.mode == loop::BufferMode::out;
  std::vector<double> compile_times;
  target::CpuArtifact artifact;
  for (int i = 0; i < 9; ++i) {
    compile_times.push_back(processor_seconds([&] { artifact = *codegen::compile(kernel, target, {}); }));
  }
  std::string line = fmt::format("{:18}{} {:3} lanes  compile {:5.2f} ms  object {:5} B ", benchmark.name,
                                 streaming ? " streaming" : "          ", lanes, median(compile_times) * 1e3,
                                 artifact.object.size());
  for (int64_t rows : {16, 4096, 32768}) {
    size_t count = static_cast<size_t>(rows) * 1024;
    std::unique_ptr<float[], decltype(&std::free)> x(static_cast<float*>(std::aligned_alloc(4096, count * 4)),
                                                     std::free);
    std::unique_ptr<float[], decltype(&std::free)> y(static_cast<float*>(std::aligned_alloc(4096, count * 4)),
                                                     std::free);
    DType dtype = kernel.buffers[loop::BufferId(0)].dtype;
    for (size_t i = 0; i < count; ++i) {
      double value = (static_cast<double>(i % 1001) - 500) / 100;
      store_scalar(x.get(), static_cast<int64_t>(i), Scalar::of(dtype, value));
      y[i] = 0;
    }
    std::vector<float> parameters(1024, 1.0f);
    std::vector<void*> buffers = {x.get()};
    for (size_t i = 2; i < kernel.buffers.size(); ++i) buffers.push_back(parameters.data());
    buffers.push_back(y.get());
    bool flat = kernel.buffers[loop::BufferId(0)].shape.size() == 1;
    int64_t grid = flat ? (1024 * rows + 4095) / 4096 : rows;
    target::KernelError error;
    double kernel_rate = rate(static_cast<double>(count) * benchmark.bytes,
                              [&] { artifact.entry(buffers.data(), &rows, 0, grid, nullptr, &error); });
    double copy_rate =
        rate(static_cast<double>(count) * 8, [&] { std::memcpy(y.get(), x.get(), count * 4); });
    std::string beside = fmt::format("copy {:5.1f}", copy_rate);
    if (benchmark.by_hand && by_hand::is_supported()) {
      double hand_rate = rate(static_cast<double>(count) * benchmark.bytes,
                              [&] { benchmark.by_hand(x.get(), y.get(), rows); });
      beside += fmt::format(", by hand {:4.1f}", hand_rate);
    }
    line += fmt::format(" | {:6} rows {:6.1f} ({})", rows, kernel_rate, beside);
  }
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int lanes = argc > 1 ? std::atoi(argv[1]) : 16;
  target::CpuTarget target = codegen::host_target();
  fmt::print("{} on {}, {} byte vectors\n", codegen::name(), target.cpu, target.vector_bytes);
  for (const Benchmark& benchmark : kBenchmarks) {
    if (argc > 2 && !std::strstr(benchmark.name, argv[2])) continue;
    for (bool streaming : {false, true}) run(benchmark, lanes, target, streaming);
  }
}
