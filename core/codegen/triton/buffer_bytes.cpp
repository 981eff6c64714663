#include "codegen/triton/buffer_bytes.h"

namespace kerf::triton {

int64_t buffer_bytes(const Trace&) { return 0; }

int64_t buffer_bytes(const KernelFile& file, const NamedIntegers& blocks) {
  return buffer_bytes(trace_kernel(file, blocks));
}

}  // namespace kerf::triton
