#pragma once
// How long the steps of a Plan take, counted while timing is on. It is one switch for the process; off (as it starts), it
// costs an executor one relaxed load per call. Calls from several threads add up.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace kerf::runtime {

void set_step_timing(bool on);
bool step_timing();

struct StepTime {
  bool is_extern = false;
  int64_t calls = 0;
  int64_t nanoseconds = 0;  // of all calls, on the calling thread
};

class StepTimes {
 public:
  explicit StepTimes(size_t steps) : counters_(steps) {}

  // Runs `step` as step number `index`, and counts its time.
  template <class Step>
  void measure(size_t index, const Step& step) {
    auto start = std::chrono::steady_clock::now();
    step();
    auto elapsed = std::chrono::steady_clock::now() - start;
    counters_[index].calls.fetch_add(1, std::memory_order_relaxed);
    counters_[index].nanoseconds.fetch_add(std::chrono::nanoseconds(elapsed).count(),
                                           std::memory_order_relaxed);
  }
  int64_t calls(size_t index) const { return counters_[index].calls.load(std::memory_order_relaxed); }
  int64_t nanoseconds(size_t index) const {
    return counters_[index].nanoseconds.load(std::memory_order_relaxed);
  }
  void clear();

 private:
  struct Counter {
    std::atomic<int64_t> calls = 0;
    std::atomic<int64_t> nanoseconds = 0;
  };
  std::vector<Counter> counters_;
};

}  // namespace kerf::runtime
