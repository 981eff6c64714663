#pragma once
// A Program: what one compiled graph does, as kernels and extern calls over numbered buffers, in order. It is
// target-independent until scheduling; lower/ makes one kernel per value, sched/ merges them.
//
// Buffers
//   input     given by the caller: `input_index` says which argument; strides as passed, data not ours
//   constant  not used on the cpu path today: scalars are literals in kernels
//   temp      allocated and freed by the Plan
//   output    allocated for the caller with eager's strides
// A buffer is flat; extern arguments and outputs view it through sizes, strides and an offset (TensorView).
#include <string>
#include <variant>
#include <vector>

#include "loop/kernel.h"
#include "target/extern_call.h"

namespace kerf::loop {

enum class BufferKind : uint8_t { input, temp, output };

struct ProgramBuffer {
  std::string name;
  DType dtype = DType::f32;
  sym::Expr elements;  // addressable elements from the data pointer
  BufferKind kind = BufferKind::temp;
  int input_index = -1;            // kind input
  bool ends = false;               // kind input: its memory is free after its last use
  bool realised = false;           // kept in memory for its readers: what writes it is merged with nothing
  bool written_by_extern = false;  // memory is adopted from the extern's result, never planned into an arena
  int pieces = 0;                  // that many kernels each write a part of it, no element twice (a cat)
};

// For reports: a kernel of the program before fusion, and why it runs in this launch.
struct Merged {
  std::string name;
  std::vector<std::string> sources;  // the user's lines
  std::string why;
};

struct Launch {
  Kernel kernel;
  std::vector<target::BufferIndex>
      arguments;  // program buffer of each kernel buffer that is not local, in order
  // Iterations of the loops around the kernel's body are known to be independent (a fused group); scheduling need not
  // prove it. Not part of the text form.
  bool outer_is_parallel = false;
  std::vector<Merged> merged;  // of a fused kernel; not part of the text form
};

struct Program {
  sym::Context* context = nullptr;
  std::vector<Size> sizes;  // symbols; bound from input shapes (size_sources) at run time
  std::vector<target::SizeSource> size_sources;
  std::vector<ProgramBuffer> buffers;  // index: target::BufferIndex
  std::vector<std::variant<Launch, target::ExternCall>> steps;
  std::vector<target::ProgramOutput> outputs;  // what the graph returns, in order
};

}  // namespace kerf::loop
