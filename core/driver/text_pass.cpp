#include "driver/text_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "axis/domain_text.h"
#include "base/error.h"
#include "codegen/triton/emit.h"
#include "driver/check_kernel.h"
#include "driver/compile.h"
#include "graph/parse.h"
#include "graph/passes/passes.h"
#include "graph/print.h"
#include "graph/verify.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/renumber.h"
#include "loop/verify.h"
#include "loop/verify_program.h"
#include "lower/lower.h"
#include "runtime/plan_text.h"
#include "sched/gather_producers.h"
#include "sched/order_steps.h"
#include "sched/realise.h"
#include "sched/reuse_operands.h"
#include "sched/schedule_program.h"
#include "sched/split_folds.h"
#include "sched/tile_kernel.h"

namespace kerf::driver {

namespace {

using graph::Graph;
using loop::Kernel;
using loop::Program;

// Texts must not depend on what a target is given later.
sched::TileLimits limits_of(codegen::triton::Dialect dialect) {
  if (dialect == codegen::triton::Dialect::nvidia) return {};
  return {.sizes = {.elements = 8192, .persistent_row = 1024},
          .powers_of_two = false,
          .alignment = 8,
          .programs = 40,
          .masked_reads = false,
          .backwards = false,
          .looked_up = false};
}

// --- any of the IRs, told apart by the first word of the text

using Ir = std::variant<Graph, Program, Kernel>;

Ir parse(std::string_view text, sym::Context& context) {
  base::Lexer lexer(text);
  if (lexer.is("graph")) return graph::parse(text, context);
  if (lexer.is("program")) return loop::parse_program(text, context);
  return loop::parse_kernel(text, context);
}

std::string print(const Ir& ir) {
  if (const auto* graph = std::get_if<Graph>(&ir)) return graph::to_text(*graph);
  return std::holds_alternative<Program>(ir) ? to_text(std::get<Program>(ir)) : to_text(std::get<Kernel>(ir));
}

// Invalid input is the text's fault; invalid output is the pass's, and a CHECK.
template <class T>
const T& valid(const T& ir) {
  std::vector<std::string> errors = verify(ir);
  if (!errors.empty()) throw UserError(fmt::format("{}", fmt::join(errors, "\n")));
  return ir;
}

template <class T>
T parse_valid(std::string_view text, sym::Context& context, std::string_view what) {
  Ir ir = parse(text, context);
  if (!std::holds_alternative<T>(ir)) throw UserError(fmt::format("the pass takes {}", what));
  return valid(std::get<T>(ir));
}

// --- passes of each kind as functions of texts

std::string parse_and_print(std::string_view text) {
  sym::Context context;
  return print(parse(text, context));
}

std::string verify_text(std::string_view text) {
  sym::Context context;
  Ir ir = parse(text, context);
  std::visit([](const auto& any) { valid(any); }, ir);
  return print(ir);
}

template <Graph (*pass)(const Graph&)>
std::string on_graph(std::string_view text) {
  sym::Context context;
  Graph result = pass(parse_valid<Graph>(text, context, "a graph"));
  graph::check_valid(result, "after the pass");
  return graph::to_text(result);
}

// As that target wants it.
template <Graph (*pass)(const Graph&, target::Router&), target::Device device>
Graph routed(const Graph& graph) {
  target::Router router(device);
  return pass(graph, router);
}

template <Program (*pass)(const Program&)>
std::string on_program(std::string_view text) {
  sym::Context context;
  Program result = pass(parse_valid<Program>(text, context, "a program"));
  loop::check_valid(result, "after the pass");
  return loop::to_text(result);
}

// On a kernel, or each kernel of a program.
template <Kernel (*pass)(const Kernel&)>
std::string on_kernels(std::string_view text) {
  sym::Context context;
  auto run = [](const Kernel& kernel) {
    Kernel result = pass(valid(kernel));
    loop::check_valid(result, "after the pass");
    return result;
  };
  Ir ir = parse(text, context);
  if (auto* kernel = std::get_if<Kernel>(&ir)) return loop::to_text(run(*kernel));
  auto* program = std::get_if<Program>(&ir);
  if (!program) throw UserError("the pass takes a kernel or a program");
  for (auto& step : program->steps)
    if (auto* launch = std::get_if<loop::Launch>(&step)) launch->kernel = run(launch->kernel);
  return loop::to_text(*program);
}

// Kernels as functions of a dialect, or why there is none.
template <codegen::triton::Dialect dialect>
std::string print_triton(std::string_view text) {
  sym::Context context;
  std::string result;
  auto add = [&](const Kernel& kernel) {
    sched::TiledKernel tiled =
        sched::tile_kernel(valid(kernel), limits_of(dialect), /*outer_is_parallel=*/false);
    auto emitted = codegen::triton::emit(tiled.parts, dialect);
    result += emitted ? emitted->function : fmt::format("# {}: {}\n", kernel.name, emitted.reason());
  };
  Ir ir = parse(text, context);
  if (auto* kernel = std::get_if<Kernel>(&ir)) add(*kernel);
  if (auto* program = std::get_if<Program>(&ir))
    for (auto& step : program->steps)
      if (auto* launch = std::get_if<loop::Launch>(&step)) add(launch->kernel);
  return result;
}

std::string canonical(std::string_view text) {
  sym::Context context;
  return loop::canonical_text(parse_valid<Kernel>(text, context, "a kernel"));
}

template <bool library_updates>
std::string lower_graph(std::string_view text) {
  sym::Context context;
  Program program = lower::lower(parse_valid<Graph>(text, context, "a graph"), {library_updates});
  loop::check_valid(program, "after lowering");
  return loop::to_text(program);
}

// The whole pipeline as a compile runs it, for this machine: the plan, or the error of that compile.
template <int opt_level>
std::string compile_graph(std::string_view text) {
  auto context = std::make_shared<sym::Context>();
  Graph graph = graph::parse(text, *context);
  CompileOptions options;
  options.opt_level = opt_level;
  return runtime::to_text(*compile(graph, context, options).plan);
}

// Texts must not depend on the machine: the target is that of CpuTarget's defaults.
Program schedule_for_default_target(const Program& program) { return sched::schedule_kernels(program, {}); }

Program fuse(const Program& program) { return sched::fuse_kernels(program); }
Program split_large_folds(const Program& program) { return sched::split_folds(program); }

constexpr TextPass kPasses[] = {
    // any IR
    {"roundtrip", "parse and print, valid or not", parse_and_print},
    {"verify", "check all invariants", verify_text},
    // domain
    {"canonicalize_axes", "ranges and accesses on canonical axes", axis::canonicalize_text},
    // graph
    {"import_externals", "externals that have a lowering become nodes", on_graph<graph::import_externals>},
    {"recognize_attention", "attention that a model writes out becomes the library's",
     on_graph<routed<graph::recognize_attention, target::Device::cpu>>},
    {"route_composites", "composites that the CPU's library computes become externs",
     on_graph<routed<graph::route_composites, target::Device::cpu>>},
    {"route_npu", "composites that an Ascend NPU's library computes become externs",
     on_graph<routed<graph::route_composites, target::Device::npu>>},
    {"join_added_scatters", "rows added into zeros join a sum", on_graph<graph::join_added_scatters>},
    {"remove_dead_nodes", "drop what nothing reads", on_graph<graph::remove_dead_nodes>},
    {"eliminate_common_nodes", "compute equal values once", on_graph<graph::eliminate_common_nodes>},
    {"simplify_views", "views of views become one", on_graph<graph::simplify_views>},
    {"expand_composites", "composites become their formulas", on_graph<graph::expand_composites>},
    // graph to program
    {"lower", "one small loop nest per value", lower_graph<false>},
    {"lower_library_updates", "the same with scatters by the library", lower_graph<true>},
    // graph to plan
    {"compile", "everything up to the plan, for this machine", compile_graph<2>},
    {"compile_o0", "the same with opt_level 0", compile_graph<0>},
    // program
    {"realise_views", "views that are dear to read get buffers of their own",
     on_program<sched::realise_views>},
    {"gather_producers", "gathers of few elements compute what they look up",
     on_program<sched::gather_producers>},
    {"split_folds", "long folds with few results in two stages", on_program<split_large_folds>},
    {"fuse_kernels", "merge kernels on common axes", on_program<fuse>},
    {"order_steps", "delay steps whose results only the caller reads, for less memory at once",
     on_program<sched::order_steps>},
    {"reuse_operands", "results in the memory of an operand that ends", on_program<sched::reuse_operands>},
    {"schedule_kernels", "choose and apply schedules", on_program<schedule_for_default_target>},
    // kernel text
    {"check_kernel_text", "the rules of the target that a kernel file names", describe_kernel},
    // kernel, or each kernel of a program
    {"renumber", "canonical numbers", on_kernels<loop::renumber>},
    {"remove_dead_values", "drop what no store depends on", on_kernels<loop::remove_dead_values>},
    {"triton_nvidia", "as Triton functions", print_triton<codegen::triton::Dialect::nvidia>},
    {"triton_ascend", "as Triton-Ascend functions", print_triton<codegen::triton::Dialect::ascend>},
    {"canonical_text", "the text that identifies equal kernels", canonical},
};

}  // namespace

std::span<const TextPass> text_passes() { return kPasses; }

const TextPass& find_text_pass(std::string_view name) {
  auto found = std::ranges::find(kPasses, name, &TextPass::name);
  if (found == std::end(kPasses))
    throw UserError(fmt::format("no pass '{}'; kerf_opt --list shows them", name));
  return *found;
}

std::string run_text_passes(std::string_view names, std::string_view text) {
  std::string current(text);
  while (!names.empty()) {
    size_t comma = std::min(names.find(','), names.size());
    std::string_view name = names.substr(0, comma);
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    current = find_text_pass(name.substr(0, name.find_last_not_of(' ') + 1)).run(current);
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return current;
}

}  // namespace kerf::driver
