#pragma once
// Machine code for the launches of a program. Kernels with equal normalised text are built once; the rest are built at the
// same time on all cores.
#include <vector>

#include "codegen/compile.h"
#include "loop/program.h"
#include "target/artifact.h"

namespace kerf::driver {

struct BuiltKernels {
  std::vector<target::CpuArtifact> artifacts;
  std::vector<uint32_t> artifact_of;  // per launch, in program order
  double codegen_seconds = 0;         // of the elapsed time: making target text, and
  double build_seconds = 0;           // the rest, machine code from it
};

// Throws InternalError when a scheduled kernel has no code (lowering and scheduling make only what can be emitted) and
// RuntimeError when LLVM refuses.
BuiltKernels build_kernels(const loop::Program& program, const target::CpuTarget& target,
                           const codegen::CompileOptions& options);

}  // namespace kerf::driver
