#pragma once
// JointGraph: what partition.py describes, node by node, and the cut through it.
#include <nanobind/nanobind.h>

namespace kerf::bindings {

void bind_partition(nanobind::module_& module);

}  // namespace kerf::bindings
