// A fused and scheduled program computes what the lowered one does, on random graphs; and no kernel of it is invalid.
#include <cstdlib>

#include "graph/passes/passes.h"
#include "graph/print.h"
#include "loop/interp_program.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "lower/lower.h"
#include "random_graph.h"
#include "sched/schedule_program.h"

#undef CHECK  // doctest has its own
#include <doctest/doctest.h>

namespace kerf {
namespace {

std::vector<std::vector<Scalar>> run(const loop::Program& program, const graph::Graph& graph,
                                     std::span<const int64_t> sizes, uint64_t seed) {
  loop::ProgramMemory memory(program, sizes);
  sym::Context& context = *program.context;
  for (const graph::Node& node : graph.nodes) {
    if (node.op != graph::Op::input) continue;
    int64_t index = node.get<int64_t>(graph::Attr::index);
    const graph::TensorType& type = graph.type(node.results[0]);
    target::TensorView view{memory.input(static_cast<int>(index)), type.dtype, type.shape, type.strides,
                            context.constant(0)};
    if (view.buffer == target::kNoBuffer) continue;
    int64_t elements = 1;
    for (sym::Expr d : type.shape) elements *= memory.evaluate(d);
    memory.write(view, testing::random_input(seed + static_cast<uint64_t>(index), type.dtype, elements, 2));
  }
  target::KernelError error;
  loop::interpret(program, memory, error);
  REQUIRE(error.code == 0);
  std::vector<std::vector<Scalar>> results;
  for (const target::ProgramOutput& output : program.outputs) results.push_back(memory.read(output.view));
  return results;
}

void check_seed(uint64_t seed, bool dynamic) {
  sym::Context context;
  graph::Graph graph =
      testing::random_graph(context, seed, {.nodes = 6 + static_cast<int>(seed % 12), .dynamic = dynamic});
  graph = graph::remove_dead_nodes(graph::simplify_views(graph));
  INFO("seed ", seed, dynamic ? " dynamic\n" : "\n", graph::to_text(graph));
  loop::Program lowered = lower::lower(graph);
  loop::Program fused = sched::fuse_kernels(lowered);
  for (const auto& step : fused.steps)
    if (const auto* launch = std::get_if<loop::Launch>(&step))
      REQUIRE_MESSAGE(loop::verify(launch->kernel).empty(), loop::verify(launch->kernel)[0],
                      loop::to_text(launch->kernel));
  target::CpuTarget target;
  target.vector_bytes = seed % 2 ? 16 : 64;
  loop::Program scheduled = sched::schedule_kernels(fused, target);
  for (const auto& step : scheduled.steps)
    if (const auto* launch = std::get_if<loop::Launch>(&step))
      REQUIRE_MESSAGE(loop::verify(launch->kernel).empty(), loop::verify(launch->kernel)[0],
                      loop::to_text(launch->kernel));
  std::vector<std::vector<int64_t>> all_sizes =
      dynamic ? std::vector<std::vector<int64_t>>{{2}, {7}} : std::vector<std::vector<int64_t>>{{}};
  for (const std::vector<int64_t>& sizes : all_sizes) {
    auto expected = run(lowered, graph, sizes, seed);
    auto merged = run(fused, graph, sizes, seed);
    INFO("fused:\n", loop::to_text(fused));
    for (size_t o = 0; o < expected.size(); ++o) CHECK(expected[o] == merged[o]);
    auto actual = run(scheduled, graph, sizes, seed);
    INFO("scheduled:\n", loop::to_text(scheduled));
    for (size_t o = 0; o < expected.size(); ++o) CHECK(expected[o] == actual[o]);
  }
}

// KERF_SEEDS=N runs N seeds of each kind; KERF_SEED=K only that one.
TEST_CASE("scheduled programs equal lowered ones") {
  const char* one = std::getenv("KERF_SEED");
  const char* count = std::getenv("KERF_SEEDS");
  uint64_t first = one ? std::strtoull(one, nullptr, 10) : 0;
  uint64_t last = one ? first + 1 : (count ? std::strtoull(count, nullptr, 10) : 300);
  for (uint64_t seed = first; seed < last; ++seed) {
    check_seed(seed, false);
    check_seed(seed, true);
  }
}

}  // namespace
}  // namespace kerf
