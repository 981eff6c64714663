// Builds without LLVM: a kernel stays a kernel and is run by the interpreter. Right and slow.
#include "codegen/compile.h"

#include <memory>

#include "loop/interp.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/walk.h"

namespace kerf::codegen {

namespace {

// The kernel in a context of its own: the one it was compiled in may be gone when it runs.
struct InterpretedKernel {
  sym::Context context;
  loop::Kernel kernel;
  size_t buffers = 0;  // that are not local
};

void run(const void* code, void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end,
         target::KernelError* error) {
  const auto& interpreted = *static_cast<const InterpretedKernel*>(code);
  if (begin >= end) return;
  // Threads share the record; the first failure stays.
  target::KernelError own;
  loop::interpret(interpreted.kernel, {sizes, interpreted.kernel.sizes.size()},
                  {buffers, interpreted.buffers}, own, loop::GridRange{begin, end});
  if (own.code != target::KernelError::kNone && error->code == target::KernelError::kNone) *error = own;
}

}  // namespace

std::string name() { return "interpreter"; }

target::CpuTarget host_target() { return {}; }

Result<std::string> emit(const loop::Kernel& kernel, const target::CpuTarget&) {
  return loop::to_text(kernel);
}

Result<std::vector<target::CpuArtifact>> compile(std::span<const loop::Kernel* const> kernels,
                                                 const target::CpuTarget& target,
                                                 const CompileOptions& options, double* emit_seconds) {
  if (emit_seconds) *emit_seconds = 0;
  std::vector<target::CpuArtifact> artifacts;
  for (const loop::Kernel* kernel : kernels) {
    target::CpuArtifact& artifact = artifacts.emplace_back();
    artifact.name = kernel->name;
    artifact.object = loop::to_text(*kernel);
    artifact.grid = loop::grid_extent(*kernel);
    if (options.keep_text) artifact.text = *emit(*kernel, target);
  }
  load(artifacts);
  return artifacts;
}

Result<target::CpuArtifact> compile(const loop::Kernel& kernel, const target::CpuTarget& target,
                                    const CompileOptions& options) {
  const loop::Kernel* const one = &kernel;
  return std::move(compile(std::span(&one, 1), target, options)->front());
}

void load(std::span<target::CpuArtifact> artifacts) {
  for (target::CpuArtifact& artifact : artifacts) {
    auto interpreted = std::make_shared<InterpretedKernel>();
    interpreted->kernel = loop::parse_kernel(artifact.object, interpreted->context);
    for (const loop::Buffer& buffer : interpreted->kernel.buffers) {
      interpreted->buffers += buffer.mode != loop::BufferMode::local;
    }
    artifact.interpret = run;
    artifact.code = std::move(interpreted);
  }
}

}  // namespace kerf::codegen
