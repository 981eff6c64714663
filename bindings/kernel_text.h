#pragma once
// The verifier of kernel text, for tools and tests that check saved kernels.
#include <nanobind/nanobind.h>

namespace kerf::bindings {

void bind_kernel_text(nanobind::module_& module);

}  // namespace kerf::bindings
