#pragma once
// Kernel files to syntax trees. The functions under `@triton.jit` and the dictionary KERNEL are read; whatever else the
// file has (imports, how it checks itself) is passed over.
#include <string_view>

#include "codegen/triton/syntax.h"

namespace kerf::triton {

// ParseError with the line, and what was found there, for what is not of the subset; for a file without a kernel; for a
// KERNEL that lacks a field or names a function that is not there.
KernelFile parse_text(std::string_view text);

}  // namespace kerf::triton
