#include "driver/compile.h"

#include "driver/build_kernels.h"
#include "driver/make_plan.h"
#include "driver/pipeline.h"
#include "driver/plan_cache.h"
#include "graph/print.h"
#include "runtime/plan_text.h"

namespace kerf::driver {

namespace {

BuiltKernels build_and_keep(const loop::Program& program, const target::CpuTarget& target, int opt_level,
                            Stages& stages) {
  codegen::CompileOptions options;
  options.level = opt_level == 0 ? codegen::OptLevel::O0 : codegen::OptLevel::O2;
  options.keep_text = stages.wants_text();
  // Its two phases are told apart inside.
  BuiltKernels kernels =
      stages.run("build", "build_kernels", [&] { return build_kernels(program, target, options); });
  stages.add_seconds("codegen", kernels.codegen_seconds);
  stages.add_seconds("build", -kernels.codegen_seconds);
  if (!stages.wants_text()) return kernels;
  std::string text;
  for (target::CpuArtifact& artifact : kernels.artifacts)
    text += "; kernel " + artifact.name + "\n" + std::exchange(artifact.text, {}) + "\n";
  stages.keep("codegen", text);
  return kernels;
}

// A hint that does not fit the plan (a size guessed at 64) only costs the number.
int64_t peak_bytes(runtime::Executor& executor, const std::vector<loop::Size>& sizes,
                   const SizeHints& hints) {
  try {
    return executor.prepare(hinted_sizes(sizes, hints));
  } catch (const Error&) {
    return 0;
  }
}

Compiled build(const graph::Graph& input, std::shared_ptr<sym::Context> context,
               const target::CpuTarget& target, const CompileOptions& options, Stages& stages) {
  target::Router router;
  graph::Graph graph = optimize_graph(input, stages, router);
  sched::Limits limits;
  // Not yet measured alone on the CPU (docs/decisions/0034).
  limits.fuse.alike.max_elements = 0;
  loop::Program fused = make_program(graph, stages, {}, limits);
  loop::Program program = schedule_program(fused, target, stages);
  BuiltKernels kernels = build_and_keep(program, target, options.opt_level, stages);

  Compiled result;
  CompileReport& report = result.report;
  report.target = target_name(target);
  report.nodes = static_cast<int64_t>(input.nodes.size());
  report.kernels = static_cast<int64_t>(kernels.artifact_of.size());
  report.unique_kernels = static_cast<int64_t>(kernels.artifacts.size());
  report.steps = describe_steps(fused, options.hints);
  report.steps.routes = router.records();
  result.plan = stages.run("build", "make_plan", [&] {
    return std::make_shared<const runtime::Plan>(
        make_plan(program, std::move(kernels), plan_inputs(input), std::move(context)));
  });
  if (stages.wants_text()) stages.keep("plan", runtime::to_text(*result.plan));
  result.executor = std::make_shared<runtime::Executor>(result.plan);
  report.peak_bytes = peak_bytes(*result.executor, program.sizes, options.hints);
  return result;
}

}  // namespace

std::string code_generator() { return codegen::name(); }

std::string target_name(const target::CpuTarget& target) {
  return "cpu (" + codegen::name() + ", " + target.cpu + ")";
}

Compiled compile(const graph::Graph& input, std::shared_ptr<sym::Context> context,
                 const CompileOptions& options) {
  auto start = std::chrono::steady_clock::now();
  target::CpuTarget target = codegen::host_target();
  std::string graph_text = graph::to_text(input, graph::Sources::shown);
  std::string key = compile_key(graph_text, options);
  std::vector<std::string> warnings;
  bool wants_texts = options.keep_text || !options.dump_dir.empty();
  if (!wants_texts) {
    if (std::optional<Compiled> found = load_compiled(key, options, warnings)) return std::move(*found);
  }
  Stages stages(options.dump_dir, options.keep_text);
  Compiled result = build(input, std::move(context), target, options, stages);
  CompileReport& report = result.report;
  result.key = key;
  report.graph_text = std::move(graph_text);
  report.warnings = std::move(warnings);
  auto store_start = std::chrono::steady_clock::now();
  store_compiled(result, options);
  if (!key.empty()) stages.add_seconds("store", store_start);
  stages.add_seconds("total", start);
  report.seconds = stages.seconds();
  report.source_text = stages.text();
  report.dump_problem = stages.problem();
  return result;
}

}  // namespace kerf::driver
