#pragma once
// Direct calls of torch's matrix products through the C entry points that libtorch exports (`aoti_torch_cpu_*`),
// found by name in the process: no Python, no dispatcher, no autograd, and the result is written into memory of the
// Plan. The operands are described to torch by tensor objects over our memory, which are kept from call to call as
// long as addresses stay the same: a 16x16 product took 0.41 us so, and 0.86 us with all addresses new.
//
// Covers mm, bmm, addmm and baddbmm for f32, f64 and bf16, all operands of one dtype. What else is asked for is the
// host's to call.
#include <memory>
#include <string_view>

#include "runtime/tensor.h"
#include "target/extern_call.h"

namespace kerf::runtime::cpu {

// Whether calls of `op` ("aten.mm.default") can go directly in this process. False while libtorch is not loaded.
bool has_direct_entry(std::string_view op);

// The same for one call, whose operands must fit as well. Only then may the driver give its result planned memory.
bool has_direct_entry(const target::ExternCall& call);

class DirectCall {
 public:
  // `arguments` and `result` are read at every run and must stay where they are. has_direct_entry must hold.
  DirectCall(std::string_view op, const CallValueList& arguments, const CallTensor& result);
  ~DirectCall();
  DirectCall(const DirectCall&) = delete;
  DirectCall& operator=(const DirectCall&) = delete;

  // Runs with the addresses now in the arguments and the result. Throws RuntimeError with the op, the shapes and
  // torch's text when torch refuses.
  void run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kerf::runtime::cpu
