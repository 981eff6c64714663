#include "sched/order_steps.h"

#include <algorithm>

#include "sched/profit.h"
#include "sched/traffic.h"
#include "sched/tuning.h"

namespace kerf::sched {

using target::BufferIndex;

namespace {

// Computes the same whenever it runs: no generator, no effect on its arguments.
bool is_pure(const std::variant<loop::Launch, target::ExternCall>& step) {
  const auto* call = std::get_if<target::ExternCall>(&step);
  return !call || (call->is_matmul_like && call->results.size() == 1);
}

class StepOrder {
 public:
  explicit StepOrder(const loop::Program& program) : program_(program), traffic_(traffic_of(program)) {
    sym::Facts facts = loop::facts_of(program.sizes);
    for (const loop::ProgramBuffer& buffer : program.buffers) {
      const bool stays = buffer.kind == loop::BufferKind::input && !buffer.ends;
      bytes_.push_back(stays ? 0 : hinted(buffer.elements, facts) * byte_size(buffer.dtype));
    }
    for (size_t step = 0; step < program.steps.size(); ++step) {
      order_.push_back(step);
      can_wait_.push_back(is_sink(step));
    }
  }

  // Whether the order changed enough.
  bool improve() {
    measure();
    const int64_t before = alive_[peak_];
    int64_t lowest = before;
    std::vector<size_t> best = order_;
    for (int moves = 0; moves < tuning::max_delayed_steps && delay_one(); ++moves) {
      measure();
      if (alive_[peak_] >= lowest) continue;
      lowest = alive_[peak_];
      best = order_;
    }
    order_ = std::move(best);
    return before - lowest > before / tuning::min_peak_share;
  }

  const std::vector<size_t>& order() const { return order_; }

 private:
  static constexpr size_t kNever = static_cast<size_t>(-1);

  bool is_sink(size_t step) const {
    const std::vector<BufferIndex>& writes = traffic_.steps[step].writes;
    auto only_returned = [&](BufferIndex buffer) {
      return program_.buffers[buffer].kind == loop::BufferKind::output && traffic_.returned[buffer] &&
             traffic_.writers[buffer].size() == 1 && traffic_.readers[buffer].empty();
    };
    // What it reads stays as it is, so that it may be read later.
    auto is_stable = [&](BufferIndex buffer) { return traffic_.is_stable(buffer, program_); };
    return !writes.empty() && is_pure(program_.steps[step]) && std::ranges::all_of(writes, only_returned) &&
           std::ranges::all_of(traffic_.steps[step].reads, is_stable);
  }

  // Per buffer its first and last position in the order; per position the bytes that are alive, and those that are so
  // beyond it.
  void measure() {
    const size_t count = order_.size();
    first_.assign(bytes_.size(), kNever);
    last_.assign(bytes_.size(), 0);
    position_.assign(count, 0);
    for (size_t p = 0; p < count; ++p) {
      position_[order_[p]] = p;
      for (const std::vector<BufferIndex>* list :
           {&traffic_.steps[order_[p]].reads, &traffic_.steps[order_[p]].writes})
        for (BufferIndex buffer : *list) {
          first_[buffer] = std::min(first_[buffer], p);
          last_[buffer] = p;
        }
    }
    std::vector<int64_t> change(count + 1);
    lasting_.assign(count, 0);
    for (BufferIndex b = 0; b < bytes_.size(); ++b) {
      if (first_[b] == kNever) continue;
      if (program_.buffers[b].kind == loop::BufferKind::input) first_[b] = 0;
      change[first_[b]] += bytes_[b];
      if (traffic_.returned[b]) continue;
      change[last_[b] + 1] -= bytes_[b];
      lasting_[last_[b]] -= bytes_[b];
    }
    alive_.assign(count, 0);
    int64_t alive = 0;
    for (size_t p = 0; p < count; ++p) lasting_[p] += alive_[p] = alive += change[p];
    peak_ = static_cast<size_t>(std::ranges::max_element(alive_) - alive_.begin());
  }

  int64_t written_bytes(size_t step) const {
    int64_t bytes = 0;
    for (BufferIndex buffer : traffic_.steps[step].writes) bytes += bytes_[buffer];
    return bytes;
  }

  // What is alive longer if the step waits.
  int64_t held_bytes(size_t step) const {
    int64_t bytes = 0;
    for (BufferIndex buffer : traffic_.steps[step].reads)
      if (last_[buffer] == position_[step] && !traffic_.returned[buffer]) bytes += bytes_[buffer];
    return bytes;
  }

  bool delay_one() {
    size_t chosen = kNever;
    int64_t most = 0;
    for (size_t p = 0; p <= peak_; ++p) {
      size_t step = order_[p];
      if (!can_wait_[step]) continue;
      int64_t freed = written_bytes(step) - held_bytes(step);
      if (freed <= most) continue;
      chosen = step;
      most = freed;
    }
    if (chosen == kNever) return false;
    size_t to = slot_for(chosen);
    if (to == kNever) {
      can_wait_[chosen] = false;
    } else {
      auto begin = order_.begin();
      auto from = begin + static_cast<std::ptrdiff_t>(position_[chosen]);
      std::rotate(from, from + 1, begin + static_cast<std::ptrdiff_t>(to) + 1);
    }
    return true;
  }

  // The position behind which the step stays well under the peak, or else under it; kNever if there is none. Its results
  // are among what lasts beyond that position.
  size_t slot_for(size_t step) const {
    const int64_t limit = alive_[peak_], held = held_bytes(step);
    for (int64_t below : {limit - limit / 8, limit})
      for (size_t p = std::max(peak_, position_[step] + 1); p < order_.size(); ++p)
        if (lasting_[p] + held < below) return p;
    return kNever;
  }

  const loop::Program& program_;
  Traffic traffic_;
  std::vector<int64_t> bytes_;            // by buffer; 0 for what outlives the call anyway
  std::vector<bool> can_wait_;            // by step
  std::vector<size_t> order_;             // steps
  std::vector<size_t> position_;          // by step
  std::vector<size_t> first_, last_;      // by buffer: positions
  std::vector<int64_t> alive_, lasting_;  // by position
  size_t peak_ = 0;
};

}  // namespace

loop::Program order_steps(const loop::Program& program) {
  if (program.steps.empty()) return program;
  StepOrder order(program);
  if (!order.improve()) return program;
  loop::Program result = program;
  result.steps.clear();
  for (size_t step : order.order()) result.steps.push_back(program.steps[step]);
  return result;
}

}  // namespace kerf::sched
