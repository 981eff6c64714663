#pragma once
// The compile pipeline, stage by stage, with verification, dumps and timing around each (stage.h).
#include <memory>

#include "driver/compile.h"
#include "driver/stage.h"
#include "graph/graph.h"
#include "loop/program.h"
#include "lower/lower.h"
#include "sched/schedule_program.h"
#include "target/cpu.h"
#include "target/routing.h"

namespace kerf::driver {

// Tensor-level passes: what reaches lowering. Composites are gone afterwards; the router keeps what was decided about them.
graph::Graph optimize_graph(const graph::Graph& graph, Stages& stages, target::Router& router);

// Graph to fused Program, not yet scheduled.
// options, limits, accepts: of the target (lower.h, schedule_program.h); realises_views: sched/realise.h.
loop::Program make_program(const graph::Graph& graph, Stages& stages, const lower::Options& options = {},
                           const sched::Limits& limits = {}, const sched::Accepts& accepts = {},
                           bool realises_views = false);

loop::Program schedule_program(const loop::Program& program, const target::CpuTarget& target, Stages& stages);

}  // namespace kerf::driver
