#pragma once
// Program and built kernels to Plan: storages, lifetimes, steps.
#include <memory>

#include "driver/build_kernels.h"
#include "graph/graph.h"
#include "loop/program.h"
#include "runtime/plan.h"

namespace kerf::driver {

// `inputs`: what the graph's arguments look like, by their index.
runtime::Plan make_plan(const loop::Program& program, BuiltKernels kernels,
                        std::vector<runtime::PlanInput> inputs, std::shared_ptr<sym::Context> context);

// The arguments of the compiled call: tensors from the graph's input nodes, integers from its size sources, and
// places that nothing reads.
std::vector<runtime::PlanInput> plan_inputs(const graph::Graph& graph);

}  // namespace kerf::driver
