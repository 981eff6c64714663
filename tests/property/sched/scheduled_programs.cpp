// On random graphs: a fused and scheduled program computes what the lowered one does, in the interpreter and compiled; and
// no kernel of it is invalid.
#include <cstdlib>
#include <limits>

#include "codegen/compile.h"
#include "graph/passes/passes.h"
#include "graph/print.h"
#include "loop/interp_program.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "loop/walk.h"
#include "lower/lower.h"
#include "random_graph.h"
#include "sched/reuse_operands.h"
#include "sched/schedule_program.h"
#include "sched/split_folds.h"

#undef CHECK  // doctest has its own
#include <doctest/doctest.h>

namespace kerf {
namespace {

// Launches as machine code on the program's memory, the grid in one piece.
void run_compiled(const loop::Program& program, loop::ProgramMemory& memory, std::span<const int64_t> sizes,
                  const target::CpuTarget& target, target::KernelError& error) {
  for (const auto& step : program.steps) {
    const auto& launch = std::get<loop::Launch>(step);
    Result<target::CpuArtifact> built =
        codegen::compile(launch.kernel, target, {.level = codegen::OptLevel::O0});
    REQUIRE_MESSAGE(bool(built), loop::to_text(launch.kernel));
    std::vector<void*> buffers;
    for (target::BufferIndex buffer : launch.arguments) buffers.push_back(memory.data(buffer));
    std::vector<char> scratch(static_cast<size_t>(built->scratch_bytes) + 64);
    void* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64);
    target::run(*built, buffers.data(), sizes.data(), 0, memory.evaluate(loop::grid_extent(launch.kernel)),
                aligned, &error);
  }
}

enum class How { interpreted, compiled };

std::vector<std::vector<Scalar>> run(const loop::Program& program, const graph::Graph& graph,
                                     std::span<const int64_t> sizes, uint64_t seed,
                                     How how = How::interpreted, const target::CpuTarget& target = {}) {
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
  if (how == How::interpreted) {
    loop::interpret(program, memory, error);
  } else {
    run_compiled(program, memory, sizes, target, error);
  }
  REQUIRE(error.code == 0);
  std::vector<std::vector<Scalar>> results;
  for (const target::ProgramOutput& output : program.outputs) results.push_back(memory.read(output.view));
  return results;
}

constexpr uint64_t kCompileEvery = 5;  // compiling takes most of the time

sched::SplitLimits small_limits(uint64_t seed) {
  return {.min_elements = 1,
          .busy_steps = std::numeric_limits<int64_t>::max(),
          .wanted_steps = 1 + static_cast<int64_t>(seed % 3) * 8,
          .min_chunk = 2};
}

void check_seed(uint64_t seed, bool dynamic) {
  sym::Context context;
  graph::Graph graph =
      testing::random_graph(context, seed, {.nodes = 6 + static_cast<int>(seed % 12), .dynamic = dynamic});
  graph = graph::remove_dead_nodes(graph::simplify_views(graph));
  INFO("seed ", seed, dynamic ? " dynamic\n" : "\n", graph::to_text(graph));
  loop::Program lowered = lower::lower(graph);
  // Three seeds in four cut every fold they can; the rest, none.
  loop::Program split =
      seed % 4 == 0 ? sched::split_folds(lowered) : sched::split_folds(lowered, small_limits(seed));
  for (const auto& step : split.steps) {
    const auto& kernel = std::get<loop::Launch>(step).kernel;
    REQUIRE_MESSAGE(loop::verify(kernel).empty(), loop::verify(kernel)[0], loop::to_text(kernel));
  }
  // Values fall into pieces however short; column sums join rows wherever they can, in chunks of every size; what is alike is
  // joined, but for one seed in three.
  loop::Program fused = sched::fuse_kernels(split, {.pieces = {.min_block = 1},
                                                    .columns = {.min_steps = 1,
                                                                .chunk = 2 + static_cast<int64_t>(seed % 7),
                                                                .min_chunk = 2,
                                                                .min_elements = 1},
                                                    .alike = {.max_elements = seed % 3 ? 4096 : 0}});
  for (const auto& step : fused.steps)
    if (const auto* launch = std::get_if<loop::Launch>(&step))
      REQUIRE_MESSAGE(loop::verify(launch->kernel).empty(), loop::verify(launch->kernel)[0],
                      loop::to_text(launch->kernel));
  target::CpuTarget target = codegen::host_target();
  if (seed % 2) target.vector_bytes = 16;
  loop::Program scheduled = sched::schedule_kernels(sched::reuse_operands(fused), target);
  for (const auto& step : scheduled.steps)
    if (const auto* launch = std::get_if<loop::Launch>(&step))
      REQUIRE_MESSAGE(loop::verify(launch->kernel).empty(), loop::verify(launch->kernel)[0],
                      loop::to_text(launch->kernel));
  std::vector<std::vector<int64_t>> all_sizes =
      dynamic ? std::vector<std::vector<int64_t>>{{2}, {7}} : std::vector<std::vector<int64_t>>{{}};
  for (const std::vector<int64_t>& sizes : all_sizes) {
    auto expected = run(lowered, graph, sizes, seed);
    auto halved = run(split, graph, sizes, seed);
    INFO("split:\n", loop::to_text(split));
    for (size_t o = 0; o < expected.size(); ++o) CHECK(expected[o] == halved[o]);
    auto merged = run(fused, graph, sizes, seed);
    INFO("fused:\n", loop::to_text(fused));
    for (size_t o = 0; o < expected.size(); ++o) CHECK(expected[o] == merged[o]);
    auto actual = run(scheduled, graph, sizes, seed);
    INFO("scheduled:\n", loop::to_text(scheduled));
    for (size_t o = 0; o < expected.size(); ++o) CHECK(expected[o] == actual[o]);
    if (seed % kCompileEvery != 0) continue;
    auto compiled = run(scheduled, graph, sizes, seed, How::compiled, target);
    for (size_t o = 0; o < expected.size(); ++o) CHECK(expected[o] == compiled[o]);
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
