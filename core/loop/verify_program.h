#pragma once
// Checks a program: its kernels (verify.h) and how they fit together. The invariants, by the name that begins a
// message:
//
//   ids        buffers that steps and outputs name exist, and are named where one is needed
//   sizes      size symbols are distinct; buffer sizes, views and kernels mention the program's sizes only
//   buffers    an input says which argument it is
//   kernels    each kernel is valid
//   arguments  a launch names one buffer for each kernel buffer that is not local, of the same dtype, and not
//              provably smaller; what the kernel writes is not also another argument
//   order      a temporary or output is written before it is read, if it has elements
//
// Not checked: that views lie inside their buffers, and dtypes of extern calls (the executor checks results).
#include <string>
#include <vector>

#include "loop/program.h"

namespace kerf::loop {

// One message per violation; empty for a valid program.
std::vector<std::string> verify(const Program& program);

void check_valid(const Program& program, std::string_view when);

}  // namespace kerf::loop
