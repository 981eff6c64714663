#pragma once
// How much of a vector core's unified buffer a kernel takes.
#include <cstdint>

#include "codegen/triton/trace.h"

namespace kerf::triton {

// Bytes at the worst place: the tiles that are alive there, rows padded to 32 bytes, loads and stores of loops twice
// because the next round is transferred while this one is computed.
int64_t buffer_bytes(const Trace& trace);

// The same for a kernel of a file and values for its blocks.
int64_t buffer_bytes(const KernelFile& file, const NamedIntegers& blocks);

}  // namespace kerf::triton
