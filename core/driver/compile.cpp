#include "driver/compile.h"

#include <algorithm>

#include "driver/build_kernels.h"
#include "driver/make_plan.h"
#include "driver/pipeline.h"
#include "driver/plan_cache.h"
#include "loop/print.h"
#include "sched/outer.h"

namespace kerf::driver {

namespace {

void describe_steps(const loop::Program& program, bool keep_text, CompileReport& report) {
  for (const auto& step : program.steps) {
    if (const auto* call = std::get_if<target::ExternCall>(&step)) {
      report.externs.push_back({call->op, call->reason, call->source});
      continue;
    }
    const auto& launch = std::get<loop::Launch>(step);
    KernelRecord record{launch.kernel.name, launch.kernel.sources, {}, 0};
    for (const sched::PlacedAccess& access : sched::placed_accesses(launch.kernel))
      record.bytes += access.bytes;
    if (keep_text) record.text = loop::to_text(launch.kernel);
    report.kernel_records.push_back(std::move(record));
  }
}

Compiled build(const graph::Graph& input, std::shared_ptr<sym::Context> context,
               const target::CpuTarget& target, const CompileOptions& options, Stages& stages) {
  graph::Graph graph = optimize_graph(input, stages);
  loop::Program program = make_program(graph, target, stages);

  auto build_start = std::chrono::steady_clock::now();
  codegen::CompileOptions codegen_options;
  codegen_options.level = options.opt_level == 0 ? codegen::OptLevel::O0 : codegen::OptLevel::O2;
  BuiltKernels kernels = build_kernels(program, target, codegen_options);
  stages.add_seconds("build", build_start);

  Compiled result;
  CompileReport& report = result.report;
  report.target = target_name(target);
  report.nodes = static_cast<int64_t>(input.nodes.size());
  report.kernels = static_cast<int64_t>(kernels.artifact_of.size());
  report.unique_kernels = static_cast<int64_t>(kernels.artifacts.size());
  describe_steps(program, options.keep_text, report);
  result.plan = std::make_shared<const runtime::Plan>(
      make_plan(program, std::move(kernels), plan_inputs(input), context));
  result.executor = std::make_shared<runtime::Executor>(result.plan);
  return result;
}

}  // namespace

std::string target_name(const target::CpuTarget& target) {
  return "cpu (" + codegen::name() + ", " + target.cpu + ")";
}

Compiled compile(const graph::Graph& input, std::shared_ptr<sym::Context> context,
                 const CompileOptions& options) {
  auto start = std::chrono::steady_clock::now();
  target::CpuTarget target = codegen::host_target();
  std::string key = compile_key(input, options);
  std::vector<std::string> warnings;
  bool wants_texts = options.keep_text || !options.dump_dir.empty();
  if (!wants_texts) {
    if (std::optional<Compiled> found = load_compiled(key, options, warnings)) return std::move(*found);
  }
  Stages stages(options.dump_dir, options.keep_text);
  Compiled result = build(input, std::move(context), target, options, stages);
  result.key = key;
  result.report.warnings = std::move(warnings);
  auto store_start = std::chrono::steady_clock::now();
  store_compiled(result, options);
  if (!key.empty()) stages.add_seconds("store", store_start);
  stages.add_seconds("total", start);
  result.report.seconds = stages.seconds();
  result.report.source_text = stages.text();
  return result;
}

}  // namespace kerf::driver
