#include "compiled.h"

#include <cstdlib>
#include <memory>

#include "base/check.h"
#include "sym/eval.h"

namespace kerf::testing {

namespace {

int64_t grid_of(const loop::Kernel& kernel, const target::CpuArtifact& artifact, const KernelData& data) {
  auto value_of = [&](const sym::Symbol& symbol) -> int64_t {
    for (size_t i = 0; i < kernel.sizes.size(); ++i) {
      if (kernel.sizes[i].symbol.symbol().name == symbol.name) return data.sizes[i];
    }
    UNREACHABLE("no size {}", symbol.name);
  };
  return sym::evaluate(artifact.grid, value_of).value();
}

}  // namespace

KernelData executed(const loop::Kernel& kernel, const target::CpuArtifact& artifact, KernelData data,
                    int64_t parts) {
  int64_t grid = grid_of(kernel, artifact, data);
  size_t bytes = static_cast<size_t>((artifact.scratch_bytes + 63) / 64 * 64);
  std::unique_ptr<void, decltype(&std::free)> scratch(bytes ? std::aligned_alloc(64, bytes) : nullptr,
                                                      std::free);
  std::vector<void*> pointers = data.pointers();
  for (int64_t part = 0; part < parts; ++part) {
    target::run(artifact, pointers.data(), data.sizes.data(), grid * part / parts, grid * (part + 1) / parts,
                scratch.get(), &data.error);
  }
  return data;
}

KernelData compiled(const loop::Kernel& kernel, KernelData data, const CompiledRun& run) {
  auto artifact = codegen::compile(kernel, run.target, {.level = run.level});
  CHECK(artifact, "kernel {}: {}", kernel.name, artifact.reason());
  return executed(kernel, *artifact, std::move(data), run.parts);
}

}  // namespace kerf::testing
