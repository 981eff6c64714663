#include "driver/make_plan.h"

#include <algorithm>

#include "graph/shape.h"
#include "loop/walk.h"
#include "runtime/cpu/aoti.h"
#include "runtime/lifetimes.h"
#include "sched/outer.h"

namespace kerf::driver {

using sym::Expr;

namespace {

// Elements touched by all iterations of a kernel: the sum over accesses of the iterations around them.
Expr work_of(const loop::Kernel& kernel) {
  // Extents of split axes mention outer axes; the grid's share of the work is what matters, so buffer sizes stand for it.
  Expr work = kernel.context->constant(0);
  for (size_t b = 0; b < kernel.buffers.size(); ++b)
    if (kernel.buffers[loop::BufferId(b)].mode != loop::BufferMode::local)
      work = work + loop::element_count(kernel, loop::BufferId(b));
  return work;
}

runtime::LaunchStep launch_step(const loop::Launch& launch, uint32_t artifact) {
  runtime::LaunchStep step;
  step.artifact = artifact;
  step.buffers = launch.arguments;
  for (const loop::Size& size : launch.kernel.sizes) step.sizes.push_back(size.symbol);
  step.grid = loop::grid_extent(launch.kernel);
  step.work = work_of(launch.kernel);
  step.name = launch.kernel.name;
  step.sources = launch.kernel.sources;
  return step;
}

runtime::Storage storage_of(const loop::ProgramBuffer& buffer, bool adopted) {
  switch (buffer.kind) {
    case loop::BufferKind::input: return runtime::Storage::input;
    case loop::BufferKind::output: return adopted ? runtime::Storage::adopted : runtime::Storage::output;
    case loop::BufferKind::temp: return adopted ? runtime::Storage::adopted : runtime::Storage::arena;
  }
  UNREACHABLE("buffer kind {}", static_cast<int>(buffer.kind));
}

// Extern results whose memory comes from the library. Those of direct entries are written into planned memory.
std::vector<bool> adopted_buffers(const loop::Program& program) {
  std::vector<bool> adopted(program.buffers.size(), false);
  for (const auto& step : program.steps) {
    const auto* call = std::get_if<target::ExternCall>(&step);
    if (!call || runtime::cpu::has_direct_entry(*call)) continue;
    for (const target::ExternResult& result : call->results)
      if (result.buffer != target::kNoBuffer) adopted[result.buffer] = true;
  }
  return adopted;
}

}  // namespace

std::vector<runtime::PlanInput> plan_inputs(const graph::Graph& graph) {
  std::vector<runtime::PlanInput> inputs;
  auto at = [&](int64_t index) -> runtime::PlanInput& {
    if (static_cast<size_t>(index) >= inputs.size()) {
      runtime::PlanInput unused;
      unused.is_used = false;
      inputs.resize(static_cast<size_t>(index) + 1, unused);
    }
    return inputs[static_cast<size_t>(index)];
  };
  for (const graph::Node& node : graph.nodes) {
    if (node.op != graph::Op::input) continue;
    const graph::TensorType& type = graph.type(node.results[0]);
    runtime::PlanInput& input = at(node.get<int64_t>(graph::Attr::index));
    input.dtype = type.dtype;
    input.shape = type.shape;
    input.strides = graph::strides_of_input(graph, node);
    input.is_used = true;
    input.is_opaque = !type.opaque.empty();
  }
  for (const target::SizeSource& source : graph.size_sources) {
    if (source.dim >= 0) continue;
    runtime::PlanInput& input = at(source.input);
    input.is_integer = true;
    input.is_used = true;
  }
  return inputs;
}

runtime::Plan make_plan(const loop::Program& program, BuiltKernels kernels,
                        std::vector<runtime::PlanInput> inputs, std::shared_ptr<sym::Context> context) {
  runtime::Plan plan;
  plan.context = std::move(context);
  for (const loop::Size& size : program.sizes) plan.sizes.push_back({size.symbol, size.range, size.modulus});
  plan.size_sources = program.size_sources;
  plan.inputs = std::move(inputs);
  plan.artifacts = std::move(kernels.artifacts);
  plan.outputs = program.outputs;
  std::vector<bool> adopted = adopted_buffers(program);
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const loop::ProgramBuffer& buffer = program.buffers[b];
    runtime::PlanBuffer planned;
    planned.name = buffer.name;
    planned.dtype = buffer.dtype;
    planned.elements = buffer.elements;
    planned.storage = storage_of(buffer, adopted[b]);
    planned.input_index = buffer.input_index;
    plan.buffers.push_back(std::move(planned));
  }
  for (size_t o = 0; o < plan.outputs.size(); ++o) {
    const target::ProgramOutput& output = plan.outputs[o];
    if (output.kind != target::ProgramOutput::Kind::tensor) continue;
    runtime::PlanBuffer& buffer = plan.buffers[output.view.buffer];
    if (buffer.storage == runtime::Storage::output && buffer.output_index < 0)
      buffer.output_index = static_cast<int>(o);
  }
  size_t launch = 0;
  for (const auto& step : program.steps) {
    if (const auto* one = std::get_if<loop::Launch>(&step)) {
      plan.steps.push_back(launch_step(*one, kernels.artifact_of[launch++]));
      plan.artifacts[std::get<runtime::LaunchStep>(plan.steps.back()).artifact].grid =
          std::get<runtime::LaunchStep>(plan.steps.back()).grid;
    } else {
      plan.steps.push_back(std::get<target::ExternCall>(step));
    }
  }
  runtime::compute_lifetimes(plan);
  runtime::verify(plan);
  return plan;
}

}  // namespace kerf::driver
