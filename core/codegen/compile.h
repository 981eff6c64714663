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

// Emits, builds and loads scheduled kernels of different names (at least one) as one object, which the first artifact has:
// setting LLVM up for an object takes as long as a sixth of an average kernel. Others may be built at the same time when each
// kernel has a sym::Context of its own: compiling interns expressions there. `emit_seconds`, where given, receives the part
// of the time that making the text took. Throws RuntimeError when LLVM says no.
Result<std::vector<target::CpuArtifact>> compile(std::span<const loop::Kernel* const> kernels,
                                                 const target::CpuTarget& target,
                                                 const CompileOptions& options,
                                                 double* emit_seconds = nullptr);

// The same for one kernel.
Result<target::CpuArtifact> compile(const loop::Kernel& kernel, const target::CpuTarget& target,
                                    const CompileOptions& options);

// Loads what `compile` made earlier (same target), setting entry and code. An artifact without an object is in that of the
// artifact before it.
void load(std::span<target::CpuArtifact> artifacts);

}  // namespace kerf::codegen
