#pragma once
// Reads the text form of kernels and programs (docs/loop_ir.md). Throws ParseError with the place for text that
// is not in the grammar, names an unknown buffer, size, axis or value, or defines a name twice. Types, scopes
// and the other invariants are the verifier's: what it should reject can be written down and read.
//
// Value names may be any (%0, %mean); ids are given in canonical order, so printing a parsed kernel gives
// canonical text.
#include <string_view>

#include "base/lexer.h"
#include "loop/kernel.h"
#include "loop/program.h"

namespace kerf::loop {

Kernel parse_kernel(std::string_view text, sym::Context& context);

// One kernel that begins at the lexer's place.
Kernel parse_kernel(base::Lexer& lexer, sym::Context& context);

// `n in [1, 4096], n mod 8 = 0`: the sizes in order of first mention.
std::vector<Size> parse_sizes(base::Lexer& lexer, sym::Context& context);

Program parse_program(std::string_view text, sym::Context& context);

}  // namespace kerf::loop
