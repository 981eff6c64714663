#pragma once
// The mutable state of one running call of a Plan with one shape: addresses of buffers, prepared extern calls.
// Frames are kept by the executor and reused, so that a warm call allocates nothing but its outputs.
#include <memory>
#include <vector>

#include "runtime/call_placement.h"
#include "runtime/executor.h"
#include "runtime/extern_step.h"
#include "runtime/shape_record.h"

namespace kerf::runtime {

// What of a Plan does not depend on sizes: when memory is asked for and given back.
struct StepMemory {
  std::vector<BufferIndex> allocate;  // outputs and temporaries that this step is the first to use
  std::vector<BufferIndex> release;   // adopted buffers and temporaries that this step is the last to use
  std::vector<BufferIndex> drop;      // inputs that this step is the last to use
};

// One entry per step and a last one, for outputs that no step touches.
std::vector<StepMemory> step_memory(const Plan& plan);

class Frame {
 public:
  Frame(const Plan& plan, std::shared_ptr<const ShapeRecord> record);

  // Runs all steps and gives the outputs. Whatever happens, no reference to a host tensor stays behind.
  // `arena`: at least the record's arena bytes. `times`: null where steps are not timed.
  std::vector<CallOutput> run(Host& host, std::span<const CallInput> inputs,
                              std::span<const StepMemory> memory, void* arena, StepTimes* times);

  const ShapeRecord& record() const { return *record_; }

 private:
  class Cleanup;

  void bind(std::span<const CallInput> inputs, void* arena);
  void run_steps(Host& host, std::span<const CallInput> inputs, std::span<const StepMemory> memory,
                 StepTimes* times);
  void run_step(Host& host, size_t index);
  void launch(const LaunchStep& step, const LaunchShape& shape);
  void allocate(Host& host, BufferIndex buffer);
  void release(Host& host, BufferIndex buffer);
  void drop_input(Host& host, std::span<const CallInput> inputs, BufferIndex buffer);
  void collect_outputs(Host& host, std::span<const CallInput> inputs, std::vector<CallOutput>& outputs);

  const Plan& plan_;
  std::shared_ptr<const ShapeRecord> record_;
  CallMemory memory_;
  CallPlacement placement_;
  std::vector<void*> launch_pointers_;                 // of the step that runs
  std::vector<std::unique_ptr<ExternFrame>> externs_;  // by step; null for launches
};

}  // namespace kerf::runtime
