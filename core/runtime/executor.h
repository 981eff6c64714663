#pragma once
// Runs a Plan. One Executor per Plan; calls from several threads are safe (each call has its own frame).
//
// A call: evaluate sizes of a new shape (cached ShapeRecord), check inputs against the Plan, take an arena,
// run the steps, hand the outputs over. Launches are split over the threads of torch's OpenMP runtime when
// the work pays. Errors: IndexError for a failed check in a kernel (names kernel, source line, index and
// bound); UserError for inputs that do not fit the Plan; RuntimeError when an extern returns another dtype,
// shape or strides than the Plan promised.
#include <memory>
#include <span>
#include <vector>

#include "runtime/plan.h"
#include "runtime/step_times.h"
#include "runtime/tensor.h"

namespace kerf::runtime {

// One argument of a call: a tensor, or an integer for a SymInt input.
struct CallInput {
  TensorRef tensor;
  int64_t integer = 0;
  // Nobody but the caller of the executor holds the tensor, who lets go of it when Host::drop_input says so: a backward
  // pass frees what was saved for it as it goes.
  bool may_drop = false;
};

// One result: a host tensor (a new reference), an integer, or none.
struct CallOutput {
  target::ProgramOutput::Kind kind = target::ProgramOutput::Kind::none;
  HostTensor tensor = nullptr;
  int64_t integer = 0;
};

class Executor {
 public:
  explicit Executor(std::shared_ptr<const Plan> plan);
  ~Executor();
  std::vector<CallOutput> run(Host& host, std::span<const CallInput> inputs);
  // Evaluates what depends on sizes ahead of the first call with these (a value for each of Plan::sizes); returns
  // the bytes that such a call takes at most.
  int64_t prepare(std::span<const int64_t> sizes);
  // The bytes that the last call took at most: the arena, outputs, and results of library calls.
  int64_t peak_bytes() const;
  // Per step of the Plan: what was counted while timing was on (step_times.h).
  std::vector<StepTime> step_times() const;
  void clear_step_times();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kerf::runtime
