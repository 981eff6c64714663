// THE list of passes, top to bottom, with the reasons for the order.
#include "driver/pipeline.h"

#include "graph/passes/passes.h"
#include "sched/gather_producers.h"
#include "sched/order_steps.h"
#include "sched/realise.h"
#include "sched/reuse_operands.h"
#include "sched/schedule_program.h"
#include "sched/split_folds.h"

namespace kerf::driver {

graph::Graph optimize_graph(const graph::Graph& input, Stages& stages, target::Router& router) {
  stages.run("graph", "import", [&] {
    stages.record("import", input);
    return true;
  });
  auto run = [&](const char* name, graph::Graph (*pass)(const graph::Graph&), const graph::Graph& graph) {
    return stages.run("graph", name, [&] { return pass(graph); });
  };
  auto route = [&](const char* name, graph::Graph (*pass)(const graph::Graph&, target::Router&),
                   const graph::Graph& graph) {
    return stages.run("graph", name, [&] { return pass(graph, router); });
  };
  // Dead nodes first: a backward graph carries many, and nothing after should look at them.
  graph::Graph graph = run("remove_dead_nodes", graph::remove_dead_nodes, input);
  // Views of views become one before equal nodes are looked for, so that two spellings of one view are equal.
  graph = run("simplify_views", graph::simplify_views, graph);
  graph = run("eliminate_common_nodes", graph::eliminate_common_nodes, graph);
  graph = route("recognize_attention", graph::recognize_attention, graph);
  graph = route("route_composites", graph::route_composites, graph);
  // Everything that wants composites whole (recognition, partition, routing) stands before this line.
  graph = run("expand_composites", graph::expand_composites, graph);
  // Gradients of embeddings are scatters only now.
  graph = run("join_added_scatters", graph::join_added_scatters, graph);
  // Expansion repeats work between neighbours (the row maximum of a softmax and of its loss) and makes views of its own.
  graph = run("simplify_views", graph::simplify_views, graph);
  graph = run("eliminate_common_nodes", graph::eliminate_common_nodes, graph);
  graph = run("remove_dead_nodes", graph::remove_dead_nodes, graph);
  Stages::verify("remove_dead_nodes", graph);
  return graph;
}

loop::Program make_program(const graph::Graph& graph, Stages& stages, const lower::Options& options,
                           const sched::Limits& limits, const sched::Accepts& accepts, bool realises_views) {
  loop::Program program = stages.run("lower", "lower", [&] { return lower::lower(graph, options); });
  // Before anything is merged, so that what reads a copy is merged on the copy's axes.
  if (realises_views)
    program = stages.run("schedule", "realise_views", [&] { return sched::realise_views(program); });
  // Before folds are split and grouped: what a gather computes itself is no kernel any more.
  program = stages.run("schedule", "gather_producers", [&] { return sched::gather_producers(program); });
  // Before grouping, so that each half of a fold is merged with what it belongs to.
  program = stages.run("schedule", "split_folds", [&] { return sched::split_folds(program, limits.split); });
  program = stages.run("schedule", "fuse_kernels",
                       [&] { return sched::fuse_kernels(program, limits.fuse, accepts); });
  // What is in one kernel is settled, so that lives are known.
  program = stages.run("schedule", "order_steps", [&] { return sched::order_steps(program); });
  Stages::verify("order_steps", program);
  return program;
}

loop::Program schedule_program(const loop::Program& program, const target::CpuTarget& target,
                               Stages& stages) {
  const loop::Program reused =
      stages.run("schedule", "reuse_operands", [&] { return sched::reuse_operands(program); });
  loop::Program scheduled =
      stages.run("schedule", "schedule_kernels", [&] { return sched::schedule_kernels(reused, target); });
  Stages::verify("schedule_kernels", scheduled);
  return scheduled;
}

}  // namespace kerf::driver
