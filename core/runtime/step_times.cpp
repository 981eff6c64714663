#include "runtime/step_times.h"

namespace kerf::runtime {

namespace {

std::atomic<bool> timing = false;

}  // namespace

void set_step_timing(bool on) { timing.store(on, std::memory_order_relaxed); }

bool step_timing() { return timing.load(std::memory_order_relaxed); }

void StepTimes::clear() {
  for (Counter& counter : counters_) {
    counter.calls.store(0, std::memory_order_relaxed);
    counter.nanoseconds.store(0, std::memory_order_relaxed);
  }
}

}  // namespace kerf::runtime
