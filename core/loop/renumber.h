#pragma once
// Canonical forms of a kernel. All return a new kernel with the same meaning.
//
//   remove_dead_values  drops what no store depends on: values, parts of reduces, loops and guards left empty;
//                       then renumbers. Values that may fail stay (eager would raise there too).
//   renumber            values in order of definition (a reduce's results after its body), axes in order of
//                       opening, table entries without a definition dropped. Kernels that differ only in
//                       numbering become equal, and equal kernels print the same text.
//   normalize           renumber, and names taken away: buffers b0.., sizes s0.., axes a0.., kernel k; in
//                       another context. Only reads the kernel's own context.
#include "loop/kernel.h"

namespace kerf::loop {

Kernel remove_dead_values(const Kernel& kernel);
Kernel renumber(const Kernel& kernel);
Kernel normalize(const Kernel& kernel, sym::Context& target);

}  // namespace kerf::loop
