#pragma once
// What a code generator hands to the runtime: machine code with an entry point and how to call it. Plain data but for
// `code`, which keeps the loaded code alive.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sym/expr.h"

namespace kerf::target {

// Written by a kernel when an operation that may fail does (check_index, integer division by zero). The kernel goes on
// with a harmless value; the executor looks after each launch and throws. Zeroed by the caller.
struct KernelError {
  enum Code : int64_t { kNone = 0, kIndex = 1, kDivision = 2 };
  int64_t code = kNone;
  int64_t index = 0;  // kIndex: the offending index
  int64_t bound = 0;  // kIndex: its bound
  int64_t value = 0;  // loop ValueId of the failing operation
};

// buffers: data pointers of the kernel's non-local buffers in order. sizes: values of Kernel::sizes in order.
// begin, end: the part of the flattened grid [0, grid) to run. scratch: this thread's memory for local buffers that
// are too large for the stack, 64-byte aligned.
using CpuEntry = void (*)(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end,
                          void* scratch, KernelError* error);

// What runs a kernel in builds without a code generator; `code` is the artifact's.
using CpuInterpreter = void (*)(const void* code, void* const* buffers, const int64_t* sizes, int64_t begin,
                                int64_t end, KernelError* error);

struct CpuArtifact {
  std::string name;
  // Relocatable object file, what the disk cache stores; of interpreted kernels the text. Empty: that of the artifact before.
  std::string object;
  std::string text;           // LLVM IR, kept only when asked for
  sym::Expr grid;             // flattened extent of the outermost grid loops; constant 1 without any
  int64_t scratch_bytes = 0;  // per thread
  CpuEntry entry = nullptr;   // set once loaded, or
  CpuInterpreter interpret = nullptr;
  std::shared_ptr<const void> code;  // keeps `entry` valid
};

// Runs a part of a loaded kernel.
inline void run(const CpuArtifact& artifact, void* const* buffers, const int64_t* sizes, int64_t begin,
                int64_t end, void* scratch, KernelError* error) {
  if (artifact.entry) return artifact.entry(buffers, sizes, begin, end, scratch, error);
  artifact.interpret(artifact.code.get(), buffers, sizes, begin, end, error);
}

}  // namespace kerf::target
