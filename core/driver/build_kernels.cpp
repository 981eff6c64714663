#include "driver/build_kernels.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "loop/print.h"
#include "loop/renumber.h"

namespace kerf::driver {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One distinct kernel, in a context of its own so that threads do not share any.
struct Job {
  std::unique_ptr<sym::Context> context;
  loop::Kernel kernel;
};

size_t thread_count() { return std::max(1u, std::thread::hardware_concurrency()); }

// build(0) to build(count - 1), on several threads.
void run_all(size_t count, const std::function<void(size_t)>& build) {
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        build(i);
      } catch (...) {
        std::lock_guard lock(failure_lock);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t t = 1; t < std::min(thread_count(), count); ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

// Kernels of one object: few enough that all threads have several to build.
size_t kernels_per_object(size_t kernels) {
  constexpr size_t kMost = 8, kObjectsPerThread = 4;
  return std::clamp<size_t>(kernels / (kObjectsPerThread * thread_count()), 1, kMost);
}

std::string texts_of(const std::vector<const loop::Kernel*>& kernels) {
  std::string texts;
  for (const loop::Kernel* kernel : kernels) texts += loop::to_text(*kernel) + "\n";
  return texts;
}

}  // namespace

BuiltKernels build_kernels(const loop::Program& program, const target::CpuTarget& target,
                           const codegen::CompileOptions& options) {
  const Clock::time_point start = Clock::now();
  BuiltKernels result;
  std::vector<Job> jobs;
  std::unordered_map<std::string, uint32_t> known;  // normalised text -> job
  for (const auto& step : program.steps) {
    const auto* launch = std::get_if<loop::Launch>(&step);
    if (!launch) continue;
    Job job{std::make_unique<sym::Context>(), {}};
    job.kernel = loop::normalize(launch->kernel, *job.context);
    auto [found, fresh] = known.try_emplace(loop::to_text(job.kernel), static_cast<uint32_t>(jobs.size()));
    if (fresh) jobs.push_back(std::move(job));
    result.artifact_of.push_back(found->second);
  }
  result.artifacts.resize(jobs.size());
  struct Spent {
    double emit = 0, all = 0;
  };
  const size_t most = options.keep_text ? 1 : kernels_per_object(jobs.size());
  std::vector<Spent> spent((jobs.size() + most - 1) / most);
  run_all(spent.size(), [&](size_t object) {
    const Clock::time_point begun = Clock::now();
    const size_t first = object * most, end = std::min(first + most, jobs.size());
    std::vector<const loop::Kernel*> kernels;
    for (size_t i = first; i < end; ++i) {
      if (i > first) jobs[i].kernel.name += std::to_string(i - first);
      kernels.push_back(&jobs[i].kernel);
    }
    auto built = codegen::compile(kernels, target, options, &spent[object].emit);
    spent[object].all = seconds_since(begun);
    CHECK(built, "a kernel cannot be emitted: {}\n{}", built.reason(), texts_of(kernels));
    for (size_t i = first; i < end; ++i) {
      result.artifacts[i] = std::move((*built)[i - first]);
      result.artifacts[i].grid = sym::Expr();  // belongs to the job's context; the plan has its own
    }
  });
  // Threads overlap: the elapsed time is shared out as the threads' time is.
  double emit = 0, all = 0;
  for (const Spent& one : spent) emit += one.emit, all += one.all;
  const double elapsed = seconds_since(start);
  result.codegen_seconds = all > 0 ? elapsed * emit / all : 0;
  result.build_seconds = elapsed - result.codegen_seconds;
  return result;
}

}  // namespace kerf::driver
