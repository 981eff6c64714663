#pragma once
// Small functions that kernels call: those that an operation's row names, and folds that tl has no word for. A kernel file holds
// the ones that its kernel uses.
#include <string_view>

namespace kerf::codegen::triton {

// The function's text with its decorator, the same in both dialects.
std::string_view library_function(std::string_view name);

// Another library function that it calls; empty if there is none.
std::string_view library_needs(std::string_view name);

}  // namespace kerf::codegen::triton
