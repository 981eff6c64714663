#pragma once
// Kernel texts for targets that compute in tiles, as Python sees them.
#include <nanobind/nanobind.h>

namespace kerf::bindings {

void bind_tiles(nanobind::module_& module);

}  // namespace kerf::bindings
