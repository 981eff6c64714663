#pragma once
// Text of the loop IR; the grammar is in docs/loop_ir.md. Printing shows ids as they are; parsing (parse.h) gives
// an equal kernel, canonically numbered. So texts of renumbered kernels are equal exactly if the kernels are.
// Not in the text: Kernel::sources.
#include <string>

#include "loop/kernel.h"
#include "loop/program.h"

namespace kerf::loop {

std::string to_text(const Kernel& kernel);

// The line of one statement without its body, for messages. A define prints its value.
std::string to_text(const Kernel& kernel, const Stmt& stmt);

// The text of a constant that parses back to the same bits: `1.5`, `-0.0`, `inf`, `nan`, `true`.
std::string to_text(const Scalar& scalar);

// The text of the normalized kernel: the key under which equal kernels are built once. Sizes and buffers keep
// their order, so kernels of equal text are called alike.
std::string canonical_text(const Kernel& kernel);

// `n in [1, 4096], n mod 8 = 0`: what is known about sizes, with every size named at least once.
std::string to_text(const std::vector<Size>& sizes);

std::string to_text(const Program& program);

}  // namespace kerf::loop
