#pragma once
// Functions that generated code calls: libm and the runtime library of the process, and a few of our own for which
// libm has none.
#include <string>

namespace kerf::codegen {

// nullptr when there is none.
void* find_symbol(const std::string& name);

}  // namespace kerf::codegen
