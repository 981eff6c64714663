#pragma once
// Text of a Plan: print and parse. Code is not in the text; an artifact shows the hash of its object. Neither is an
// artifact's grid, which is over the sizes of its kernel: each launch has its own.
//
//   plan given n in [1, 4096], n mod 8 = 0
//     size n = input 0 dim 0
//     input 0: f32[n, 64] strides [64, 1]          (or: input 1: integer; with `unused`, `opaque` after it)
//     buffer %0 "x": f32[64*n] input 0 live 0 to 1 (or: arena, output 0, adopted; `never` for one not used)
//     artifact 0 "k0" scratch 0 object "32 hexadecimal digits; empty without an object"
//     launch 0 "k0" %0, %2 sizes [n] grid n work 64*n sources ["model.py:3"]
//     extern ...                                   (target/text.h)
//     return ...
// Printing is canonical: equal texts mean equal plans up to code. The text of a parsed plan equals the parsed text
// once the objects are back.
#include <string>
#include <string_view>

#include "runtime/plan.h"

namespace kerf::runtime {

std::string to_text(const Plan& plan);

// A plan in a new context, without objects and code. `object_hashes`, where given, receives the hash of each
// artifact's object. Throws ParseError; the plan is not verified.
Plan parse_plan(std::string_view text, std::vector<std::string>* object_hashes = nullptr);

}  // namespace kerf::runtime
