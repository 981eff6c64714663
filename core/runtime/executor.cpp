#include "runtime/executor.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/check.h"
#include "runtime/arena.h"
#include "runtime/frame.h"
#include "runtime/input_check.h"
#include "runtime/lifetimes.h"
#include "runtime/shape_record.h"

namespace kerf::runtime {

namespace {

// A function called with ever new sizes keeps the records of the latest only. A record and its frame take a few
// hundred bytes per step; making them again costs about as much as a few calls.
constexpr size_t kMaxRecords = 32;

}  // namespace

struct Executor::State {
  explicit State(std::shared_ptr<const Plan> p)
      : plan(std::move(p)),
        sources(first_sources(*plan)),
        memory(step_memory(*plan)),
        evaluator(*plan),
        times(plan->steps.size()) {}

  // The frame of a call, with its record; both are back in the cache when the call ends, however it ends.
  class Lease {
   public:
    Lease(State& state, std::span<const int64_t> sizes)
        : state_(state),
          frame_(state.take_frame(sizes)),
          arena_(state.arenas->take(frame_->record().arena.bytes)) {}
    ~Lease() {
      state_.arenas->give_back(arena_);
      state_.give_back_frame(std::move(frame_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Frame& frame() { return *frame_; }
    void* arena() { return arena_.data; }

   private:
    State& state_;
    std::unique_ptr<Frame> frame_;
    ArenaBlock arena_;
  };

  struct Entry {
    std::shared_ptr<const ShapeRecord> record;
    std::vector<std::unique_ptr<Frame>> idle;
  };

  std::unique_ptr<Frame> take_frame(std::span<const int64_t> sizes);
  void give_back_frame(std::unique_ptr<Frame> frame);
  Entry* find(std::span<const int64_t> sizes);

  std::shared_ptr<const Plan> plan;
  std::vector<target::SizeSource> sources;
  std::vector<StepMemory> memory;
  ShapeEvaluator evaluator;
  std::shared_ptr<ArenaCache> arenas = shared_arenas();
  StepTimes times;
  std::atomic<int64_t> peak_bytes = 0;

  std::mutex mutex;
  std::vector<Entry> entries;  // latest first; guarded by mutex
};

// The entry of these sizes, moved to the front. The mutex is held.
Executor::State::Entry* Executor::State::find(std::span<const int64_t> sizes) {
  auto entry = std::ranges::find_if(
      entries, [&](const Entry& e) { return std::ranges::equal(e.record->sizes, sizes); });
  if (entry == entries.end()) return nullptr;
  std::rotate(entries.begin(), entry, entry + 1);
  return &entries.front();
}

std::unique_ptr<Frame> Executor::State::take_frame(std::span<const int64_t> sizes) {
  std::shared_ptr<const ShapeRecord> record;
  {
    std::lock_guard lock(mutex);
    if (Entry* entry = find(sizes)) {
      record = entry->record;
      if (!entry->idle.empty()) {
        std::unique_ptr<Frame> frame = std::move(entry->idle.back());
        entry->idle.pop_back();
        return frame;
      }
    }
  }
  if (!record) {
    record = evaluator.evaluate(sizes);
    std::lock_guard lock(mutex);
    if (Entry* entry = find(sizes)) {  // another thread was faster
      record = entry->record;
    } else {
      if (entries.size() == kMaxRecords) entries.pop_back();
      entries.insert(entries.begin(), Entry{record, {}});
    }
  }
  return std::make_unique<Frame>(*plan, record);
}

void Executor::State::give_back_frame(std::unique_ptr<Frame> frame) {
  std::lock_guard lock(mutex);
  for (Entry& entry : entries) {
    if (entry.record.get() != &frame->record()) continue;
    entry.idle.push_back(std::move(frame));
    return;
  }
}

Executor::Executor(std::shared_ptr<const Plan> plan) {
  CHECK(plan, "an executor without a plan");
  verify(*plan);
  for (const target::CpuArtifact& artifact : plan->artifacts)
    CHECK(artifact.entry || artifact.interpret, "artifact {} is not loaded", artifact.name);
  state_ = std::make_unique<State>(std::move(plan));
}

Executor::~Executor() = default;

std::vector<CallOutput> Executor::run(Host& host, std::span<const CallInput> inputs) {
  State& state = *state_;
  std::vector<int64_t> sizes(state.plan->sizes.size());
  read_sizes(*state.plan, state.sources, inputs, sizes);
  State::Lease lease(state, sizes);
  const ShapeRecord& record = lease.frame().record();
  check_inputs(*state.plan, record, inputs);
  state.peak_bytes.store(record.peak_bytes, std::memory_order_relaxed);
  StepTimes* times = step_timing() ? &state.times : nullptr;
  return lease.frame().run(host, inputs, state.memory, lease.arena(), times);
}

int64_t Executor::prepare(std::span<const int64_t> sizes) {
  std::unique_ptr<Frame> frame = state_->take_frame(sizes);
  const int64_t bytes = frame->record().peak_bytes;
  state_->give_back_frame(std::move(frame));
  return bytes;
}

std::vector<StepTime> Executor::step_times() const {
  std::vector<StepTime> times;
  for (size_t i = 0; i < state_->plan->steps.size(); ++i) {
    bool is_extern = std::holds_alternative<target::ExternCall>(state_->plan->steps[i]);
    times.push_back({is_extern, state_->times.calls(i), state_->times.nanoseconds(i)});
  }
  return times;
}

void Executor::clear_step_times() { state_->times.clear(); }

int64_t Executor::peak_bytes() const { return state_->peak_bytes.load(std::memory_order_relaxed); }

}  // namespace kerf::runtime
