#include "runtime/frame.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "runtime/block_memory.h"
#include "runtime/launch.h"
#include "runtime/lifetimes.h"

namespace kerf::runtime {

namespace {

// Smaller inputs live until the call ends: asking the host takes Python's lock.
constexpr int64_t kWorthDropping = 32 * 1024;

// Whether the call holds a reference to the buffer's host tensor, and so must release it or hand it over.
bool owns_tensor(const PlanBuffer& buffer) {
  return buffer.storage == Storage::output || buffer.storage == Storage::adopted;
}

}  // namespace

std::vector<StepMemory> step_memory(const Plan& plan) {
  std::vector<StepMemory> result(plan.steps.size() + 1);
  for (BufferIndex i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    if (!is_used(buffer)) continue;
    const bool is_temporary = buffer.storage == Storage::arena;
    if (is_temporary || buffer.storage == Storage::output) result[buffer.first_step].allocate.push_back(i);
    if (is_temporary || buffer.storage == Storage::adopted) result[buffer.last_step].release.push_back(i);
    if (buffer.storage == Storage::input) result[buffer.last_step].drop.push_back(i);
  }
  return result;
}

// Leaves the frame without references, after a failure too. `outputs` are only what a failing call has collected.
class Frame::Cleanup {
 public:
  Cleanup(Frame& frame, Host& host, std::vector<CallOutput>& outputs)
      : frame_(frame), host_(host), outputs_(outputs) {}
  ~Cleanup() {
    for (BufferIndex i = 0; i < frame_.plan_.buffers.size(); ++i) frame_.release(host_, i);
    if (!succeeded_)
      for (CallOutput& output : outputs_)
        if (output.tensor) host_.release(output.tensor);
  }
  Cleanup(const Cleanup&) = delete;
  Cleanup& operator=(const Cleanup&) = delete;
  void succeed() { succeeded_ = true; }

 private:
  Frame& frame_;
  Host& host_;
  std::vector<CallOutput>& outputs_;
  bool succeeded_ = false;
};

Frame::Frame(const Plan& plan, std::shared_ptr<const ShapeRecord> record)
    : plan_(plan), record_(std::move(record)), placement_(plan, *record_), externs_(plan.steps.size()) {
  memory_.pointers.resize(plan.buffers.size());
  memory_.owners.resize(plan.buffers.size());
  size_t most = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (auto* launch = std::get_if<LaunchStep>(&plan.steps[i])) {
      most = std::max(most, launch->buffers.size());
    } else {
      externs_[i] = std::make_unique<ExternFrame>(plan, std::get<target::ExternCall>(plan.steps[i]),
                                                  std::get<ExternShape>(record_->steps[i]));
    }
  }
  launch_pointers_.resize(most);
}

std::vector<CallOutput> Frame::run(Host& host, std::span<const CallInput> inputs,
                                   std::span<const StepMemory> memory, void* arena, StepTimes* times) {
  std::vector<CallOutput> outputs;
  Cleanup cleanup(*this, host, outputs);
  bind(inputs, arena);
  placement_.begin(block_memory(), inputs);
  run_steps(host, inputs, memory, times);
  collect_outputs(host, inputs, outputs);
  cleanup.succeed();
  return outputs;
}

void Frame::bind(std::span<const CallInput> inputs, void* arena) {
  for (BufferIndex i = 0; i < plan_.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan_.buffers[i];
    if (buffer.storage == Storage::input) {
      const TensorRef& tensor = inputs[static_cast<size_t>(buffer.input_index)].tensor;
      memory_.pointers[i] = tensor.data;
      memory_.owners[i] = tensor.host;
    } else if (buffer.storage == Storage::arena && record_->blocks[i] == 0) {
      memory_.pointers[i] = static_cast<char*>(arena) + record_->arena.offsets[i];
    }
  }
}

void Frame::run_steps(Host& host, std::span<const CallInput> inputs, std::span<const StepMemory> memory,
                      StepTimes* times) {
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    for (BufferIndex buffer : memory[i].allocate) allocate(host, buffer);
    if (times)
      times->measure(i, [&] { run_step(host, i); });
    else
      run_step(host, i);
    for (BufferIndex buffer : memory[i].release) release(host, buffer);
    for (BufferIndex buffer : memory[i].drop) drop_input(host, inputs, buffer);
  }
  for (BufferIndex buffer : memory.back().allocate) allocate(host, buffer);
}

void Frame::run_step(Host& host, size_t index) {
  if (externs_[index])
    externs_[index]->run(host, memory_);
  else
    launch(std::get<LaunchStep>(plan_.steps[index]), std::get<LaunchShape>(record_->steps[index]));
}

void Frame::launch(const LaunchStep& step, const LaunchShape& shape) {
  if (shape.grid <= 0) return;
  for (size_t i = 0; i < step.buffers.size(); ++i) launch_pointers_[i] = memory_.pointers[step.buffers[i]];
  run_launch(plan_.artifacts[step.artifact], step, shape, launch_pointers_.data());
}

void Frame::allocate(Host& host, BufferIndex buffer) {
  if (plan_.buffers[buffer].storage == Storage::arena) {
    if (int64_t bytes = record_->blocks[buffer])
      memory_.pointers[buffer] = block_memory().take(bytes, placement_.of(buffer).wanted);
    return;
  }
  const Geometry& geometry = record_->owners[buffer];
  memory_.owners[buffer] = host.allocate(plan_.buffers[buffer].dtype, geometry.shape, geometry.strides,
                                         placement_.of(buffer), &memory_.pointers[buffer]);
}

void Frame::release(Host& host, BufferIndex buffer) {
  if (record_->blocks[buffer] > 0) {
    block_memory().give_back(std::exchange(memory_.pointers[buffer], nullptr));
    return;
  }
  HostTensor tensor = std::exchange(memory_.owners[buffer], nullptr);
  if (tensor && owns_tensor(plan_.buffers[buffer])) host.release(tensor);
}

void Frame::drop_input(Host& host, std::span<const CallInput> inputs, BufferIndex buffer) {
  auto index = static_cast<size_t>(plan_.buffers[buffer].input_index);
  if (!inputs[index].may_drop || record_->inputs[index].bytes < kWorthDropping) return;
  memory_.pointers[buffer] = nullptr;
  memory_.owners[buffer] = nullptr;
  host.drop_input(index);
}

// Views first: they need the owners, which are handed over after.
void Frame::collect_outputs(Host& host, std::span<const CallInput> inputs, std::vector<CallOutput>& outputs) {
  outputs.resize(plan_.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const target::ProgramOutput& output = plan_.outputs[i];
    const OutputShape& shape = record_->outputs[i];
    outputs[i].kind = output.kind;
    outputs[i].integer = shape.integer;
    if (output.kind != target::ProgramOutput::Kind::tensor || shape.takes_owner) continue;
    HostTensor base = output.alias_input >= 0 ? inputs[static_cast<size_t>(output.alias_input)].tensor.host
                                              : memory_.owners[output.view.buffer];
    CHECK(base, "output {} is a view of something without a host tensor", i);
    outputs[i].tensor = host.view(base, shape.geometry.shape, shape.geometry.strides, shape.offset);
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (record_->outputs[i].takes_owner)
      outputs[i].tensor = std::exchange(memory_.owners[plan_.outputs[i].view.buffer], nullptr);
}

}  // namespace kerf::runtime
