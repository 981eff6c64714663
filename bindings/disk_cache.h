#pragma once
// The disk cache for what Python keeps there besides compiled graphs (kerf/trace_cache.py).
#include <nanobind/nanobind.h>

namespace kerf::bindings {

void bind_disk_cache(nanobind::module_& module);

}  // namespace kerf::bindings
