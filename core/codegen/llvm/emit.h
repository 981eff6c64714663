#pragma once
// A kernel as LLVM IR text, with what the artifact says about it. Includes no LLVM; build.cpp makes code of it.
#include <cstdint>
#include <string>

#include "base/result.h"
#include "codegen/llvm/ir.h"
#include "loop/kernel.h"
#include "target/cpu.h"

namespace kerf::codegen {

struct Emitted {
  sym::Expr grid;
  int64_t scratch_bytes = 0;
};

// Adds the kernel to a module, whose kernels have different names.
Result<Emitted> emit_kernel(const loop::Kernel& kernel, const target::CpuTarget& target, Module& module);

}  // namespace kerf::codegen
