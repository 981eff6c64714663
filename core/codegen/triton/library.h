#pragma once
// Small functions that kernels call: those that an operation's row names, and folds that tl has no word for. A kernel file holds
// the ones that its kernel uses.
#include <string>
#include <string_view>
#include <vector>

#include "codegen/triton/emit.h"

namespace kerf::codegen::triton {

// The function's text with its decorator, in a dialect.
std::string_view library_function(std::string_view name, Dialect dialect);

// Other library functions that it calls.
std::vector<std::string> library_needs(std::string_view name);

}  // namespace kerf::codegen::triton
