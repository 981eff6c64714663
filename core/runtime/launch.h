#pragma once
// One kernel launch: pointers, sizes and grid are known; this splits the grid over threads, hands out scratch
// memory, and turns what a kernel reports into an exception.
#include <span>

#include "runtime/plan.h"
#include "runtime/shape_record.h"

namespace kerf::runtime {

// `pointers`: data of the artifact's buffers, in its order. Throws IndexError for a failed index check and
// RuntimeError for an integer division by zero, as eager does; buffers then hold whatever was written before.
void run_launch(const target::CpuArtifact& artifact, const LaunchStep& step, const LaunchShape& shape,
                void* const* pointers);

}  // namespace kerf::runtime
