#pragma once
// The interface of the CPU code generators. codegen/llvm implements it with LLVM, codegen/no_llvm by keeping the
// kernel for the interpreter; the build picks one.
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "loop/kernel.h"
#include "target/artifact.h"
#include "target/cpu.h"

namespace kerf::codegen {

enum class OptLevel : uint8_t { O0, O2 };

struct CompileOptions {
  OptLevel level = OptLevel::O2;
  bool keep_text = false;
};

// Whether this build generates machine code ("llvm 19.1.7") or interprets ("interpreter").
std::string name();

target::CpuTarget host_target();

// The kernel as target text (LLVM IR), or why it cannot be emitted. Deterministic: equal kernels give equal text.
Result<std::string> emit(const loop::Kernel& kernel, const target::CpuTarget& target);

// Emits, builds and loads one scheduled kernel. Kernels may be built at the same time when each has a sym::Context of
// its own: compiling interns expressions there. `emit_seconds`, where given, receives the part of the time that making
// the text took. Throws RuntimeError when LLVM says no.
Result<target::CpuArtifact> compile(const loop::Kernel& kernel, const target::CpuTarget& target,
                                    const CompileOptions& options, double* emit_seconds = nullptr);

// Loads an object made by `compile` earlier (same target), setting entry and code.
void load(target::CpuArtifact& artifact);

}  // namespace kerf::codegen
