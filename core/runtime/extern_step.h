#pragma once
// Extern steps: library calls on buffers of the Plan.
//
// A result is either adopted (the library allocates, the Plan's buffer becomes that tensor) or planned (the buffer
// has arena or output memory and the library writes into it). Planned results need an entry with an out argument
// (cpu/aoti.h); where a Plan asks for one that this process lacks, the host is called and the result copied.
// What comes back is checked against the Plan before any kernel reads it: the shape must be the Plan's. A tensor with
// other strides is copied to the Plan's (strides of dimensions of size 1 are free), one of another dtype of the same
// kind is converted: where operands are mixed, tracing and kernels do not always agree (mse_loss_backward).
#include <optional>
#include <span>
#include <vector>

#include "runtime/cpu/aoti.h"
#include "runtime/plan.h"
#include "runtime/shape_record.h"
#include "runtime/tensor.h"

namespace kerf::runtime {

// The memory of a call, by buffer.
struct CallMemory {
  std::vector<void*> pointers;
  std::vector<HostTensor> owners;  // the host tensor that holds the memory, if any
};

// The state of one extern step that calls reuse: evaluated arguments whose addresses are set before each call.
class ExternFrame {
 public:
  ExternFrame(const Plan& plan, const target::ExternCall& call, const ExternShape& shape);
  ExternFrame(const ExternFrame&) = delete;
  ExternFrame& operator=(const ExternFrame&) = delete;

  // Runs the step. Adopted results are entered into `memory`, owned by the caller from then on.
  void run(Host& host, CallMemory& memory);

 private:
  struct Operand {
    CallTensor* tensor;  // inside arguments_
    BufferIndex buffer;
  };

  void set_addresses(const CallMemory& memory);
  void call_host(Host& host, CallMemory& memory);
  void check_result(size_t index, const TensorRef& got) const;
  void take_result(Host& host, size_t index, CallMemory& memory);
  TensorRef as_planned(Host& host, size_t index, const TensorRef& got);

  const Plan& plan_;
  const target::ExternCall& call_;
  const ExternShape& shape_;
  CallValueList arguments_;
  std::vector<Operand> operands_;
  std::vector<HostTensor> results_;  // of the running call, until they are taken over
  CallTensor planned_;               // the result, for `direct_`
  std::optional<cpu::DirectCall> direct_;
};

}  // namespace kerf::runtime
