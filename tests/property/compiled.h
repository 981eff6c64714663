#pragma once
// Running kernels as compiled code: the counterpart of `interpreted` in kernel_data.h.
#include "codegen/compile.h"
#include "kernel_data.h"

namespace kerf::testing {

struct CompiledRun {
  codegen::OptLevel level = codegen::OptLevel::O2;
  target::CpuTarget target = codegen::host_target();
  int64_t parts = 1;  // runs the grid is cut into
};

// `data` after the kernel ran over it as machine code. Buffers are given as they are: aligned to their element only.
KernelData compiled(const loop::Kernel& kernel, KernelData data, const CompiledRun& run = {});

// The same for code that is already loaded.
KernelData executed(const loop::Kernel& kernel, const target::CpuArtifact& artifact, KernelData data,
                    int64_t parts);

}  // namespace kerf::testing
