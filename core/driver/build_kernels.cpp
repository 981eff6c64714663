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

void run_jobs(const std::vector<Job>& jobs, const std::function<void(size_t)>& build) {
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  auto work = [&] {
    for (size_t i = next++; i < jobs.size(); i = next++) {
      try {
        build(i);
      } catch (...) {
        std::lock_guard lock(failure_lock);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  size_t count = std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), jobs.size());
  std::vector<std::thread> threads;
  for (size_t t = 1; t < count; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
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
  std::vector<Spent> spent(jobs.size());
  run_jobs(jobs, [&](size_t i) {
    const Clock::time_point begun = Clock::now();
    Result<target::CpuArtifact> built = codegen::compile(jobs[i].kernel, target, options, &spent[i].emit);
    spent[i].all = seconds_since(begun);
    CHECK(built, "kernel cannot be emitted: {}\n{}", built.reason(), loop::to_text(jobs[i].kernel));
    result.artifacts[i] = std::move(*built);
    result.artifacts[i].grid = sym::Expr();  // belongs to the job's context; the plan has its own
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
