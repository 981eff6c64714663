#pragma once
// The verifier of kernel text, for kerf.tiles and tools that check saved kernels.
#include <nanobind/nanobind.h>

namespace kerf::bindings {

void bind_kernel_text(nanobind::module_& module);

}  // namespace kerf::bindings
