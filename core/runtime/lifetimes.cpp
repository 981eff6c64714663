#include "runtime/lifetimes.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "runtime/plan_walk.h"

namespace kerf::runtime {

namespace {

struct Life {
  uint32_t first = std::numeric_limits<uint32_t>::max();
  uint32_t last = 0;
  void add(uint32_t step) {
    first = std::min(first, step);
    last = std::max(last, step);
  }
};

std::vector<Life> lives_of(const Plan& plan) {
  std::vector<Life> lives(plan.buffers.size());
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    auto use = [&](BufferIndex buffer) {
      CHECK(buffer < lives.size(), "step {} uses buffer {} of {}", i, buffer, lives.size());
      lives[buffer].add(i);
    };
    std::visit([&](const auto& step) { for_each_buffer(step, use); }, plan.steps[i]);
  }
  for (const target::ProgramOutput& output : plan.outputs) {
    if (output.kind != target::ProgramOutput::Kind::tensor) continue;
    CHECK(output.view.buffer < lives.size(), "output of buffer {} of {}", output.view.buffer, lives.size());
    lives[output.view.buffer].add(static_cast<uint32_t>(plan.steps.size()));
  }
  return lives;
}

void verify_sizes(const Plan& plan) {
  for (const target::SizeSource& source : plan.size_sources) {
    CHECK(source.symbol.is_symbol(), "a size source without a symbol");
    CHECK(source.input >= 0 && static_cast<size_t>(source.input) < plan.inputs.size(),
          "size {} comes from input {} of {}", source.symbol.symbol().name, source.input, plan.inputs.size());
    const PlanInput& input = plan.inputs[static_cast<size_t>(source.input)];
    bool exists = input.is_integer ? source.dim == -1
                                   : source.dim >= 0 && static_cast<size_t>(source.dim) < input.shape.size();
    CHECK(exists, "size {} comes from dimension {} of input {}, which does not exist",
          source.symbol.symbol().name, source.dim, source.input);
  }
  for (const PlanSize& size : plan.sizes) {
    CHECK(size.symbol.is_symbol(), "a size that is not a symbol");
    bool found = std::any_of(plan.size_sources.begin(), plan.size_sources.end(),
                             [&](const target::SizeSource& source) { return source.symbol == size.symbol; });
    CHECK(found, "size {} has no source", size.symbol.symbol().name);
  }
}

void verify_view(const Plan& plan, const target::TensorView& view, const char* where) {
  CHECK(view.buffer < plan.buffers.size(), "{}: buffer {} of {}", where, view.buffer, plan.buffers.size());
  CHECK(view.shape.size() == view.strides.size(), "{}: {} sizes but {} strides", where, view.shape.size(),
        view.strides.size());
}

void verify_steps(const Plan& plan, std::vector<int>& definitions) {
  for (const auto& step : plan.steps) {
    if (auto* launch = std::get_if<LaunchStep>(&step)) {
      CHECK(launch->artifact < plan.artifacts.size(), "launch {}: artifact {} of {}", launch->name,
            launch->artifact, plan.artifacts.size());
      continue;
    }
    const auto& call = std::get<target::ExternCall>(step);
    for_each_view(call.arguments,
                  [&](const target::TensorView& view) { verify_view(plan, view, call.op.c_str()); });
    for (const target::ExternResult& result : call.results) {
      CHECK(result.shape.size() == result.strides.size(), "{}: {} sizes but {} strides", call.op,
            result.shape.size(), result.strides.size());
      if (result.buffer != target::kNoBuffer) ++definitions[result.buffer];
    }
  }
}

void verify_buffer(const Plan& plan, BufferIndex index, int definitions) {
  const PlanBuffer& buffer = plan.buffers[index];
  switch (buffer.storage) {
    case Storage::input: {
      CHECK(buffer.input_index >= 0 && static_cast<size_t>(buffer.input_index) < plan.inputs.size(),
            "buffer {} is input {} of {}", buffer.name, buffer.input_index, plan.inputs.size());
      const PlanInput& input = plan.inputs[static_cast<size_t>(buffer.input_index)];
      CHECK(!input.is_integer, "buffer {} is the integer input {}", buffer.name, buffer.input_index);
      CHECK(input.is_used || !is_used(buffer), "buffer {} is used, but its input {} is not", buffer.name,
            buffer.input_index);
      return;
    }
    case Storage::output: {
      CHECK(buffer.output_index >= 0 && static_cast<size_t>(buffer.output_index) < plan.outputs.size(),
            "buffer {} is output {} of {}", buffer.name, buffer.output_index, plan.outputs.size());
      const target::ProgramOutput& output = plan.outputs[static_cast<size_t>(buffer.output_index)];
      CHECK(output.kind == target::ProgramOutput::Kind::tensor && output.view.buffer == index &&
                output.alias_input < 0,
            "output {} is not made of buffer {}", buffer.output_index, buffer.name);
      CHECK(output.view.dtype == buffer.dtype, "output {} is {}, its buffer {} is {}", buffer.output_index,
            to_text(output.view.dtype), buffer.name, to_text(buffer.dtype));
      return;
    }
    case Storage::adopted:
      CHECK(definitions == 1 || !is_used(buffer), "buffer {} is adopted from {} extern results", buffer.name,
            definitions);
      return;
    case Storage::arena: return;
  }
}

void verify_outputs(const Plan& plan) {
  for (const target::ProgramOutput& output : plan.outputs) {
    if (output.kind != target::ProgramOutput::Kind::tensor) continue;
    verify_view(plan, output.view, "output");
    CHECK(plan.buffers[output.view.buffer].storage != Storage::arena, "output of the temporary {}",
          plan.buffers[output.view.buffer].name);
    CHECK(output.alias_input < static_cast<int>(plan.inputs.size()), "output aliases input {} of {}",
          output.alias_input, plan.inputs.size());
  }
}

}  // namespace

void compute_lifetimes(Plan& plan) {
  std::vector<Life> lives = lives_of(plan);
  for (size_t i = 0; i < lives.size(); ++i) {
    PlanBuffer& buffer = plan.buffers[i];
    buffer.first_step = lives[i].first;
    buffer.last_step = lives[i].last;
    if (buffer.storage == Storage::input && is_used(buffer)) buffer.first_step = 0;  // defined by the caller
  }
}

void verify(const Plan& plan) {
  CHECK(plan.context != nullptr, "a plan without a context");
  for_each_expr(plan, [](sym::Expr expr) { CHECK(expr.valid(), "a plan with an absent expression"); });
  for (const PlanInput& input : plan.inputs)
    CHECK(input.shape.size() == input.strides.size(), "an input with {} sizes but {} strides",
          input.shape.size(), input.strides.size());
  verify_sizes(plan);
  std::vector<Life> lives = lives_of(plan);
  std::vector<int> definitions(plan.buffers.size());
  verify_steps(plan, definitions);
  for (BufferIndex i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    verify_buffer(plan, i, definitions[i]);
    bool covered = lives[i].first > lives[i].last ||
                   (buffer.first_step <= lives[i].first && lives[i].last <= buffer.last_step);
    CHECK(covered, "buffer {} lives from step {} to {}, but is used from {} to {}", buffer.name,
          buffer.first_step, buffer.last_step, lives[i].first, lives[i].last);
  }
  verify_outputs(plan);
}

}  // namespace kerf::runtime
