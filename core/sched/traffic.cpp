#include "sched/traffic.h"

#include <algorithm>

namespace kerf::sched {

using target::BufferIndex;

namespace {

void add_once(std::vector<BufferIndex>& list, BufferIndex buffer) {
  if (std::find(list.begin(), list.end(), buffer) == list.end()) list.push_back(buffer);
}

void collect_tensors(const target::ExternArgumentList& arguments, std::vector<BufferIndex>& out) {
  for (const target::ExternArgument& argument : arguments) {
    if (const auto* view = std::get_if<target::TensorView>(&argument.value)) add_once(out, view->buffer);
    if (const auto* list = std::get_if<target::ExternArgumentList>(&argument.value))
      collect_tensors(*list, out);
  }
}

StepTraffic launch_traffic(const loop::Launch& launch) {
  StepTraffic traffic;
  size_t next = 0;
  std::vector<BufferIndex> bound(launch.kernel.buffers.size(), target::kNoBuffer);
  for (size_t k = 0; k < launch.kernel.buffers.size(); ++k)
    if (launch.kernel.buffers[loop::BufferId(k)].mode != loop::BufferMode::local)
      bound[k] = launch.arguments[next++];
  for (size_t k = 0; k < bound.size(); ++k) {
    loop::BufferMode mode = launch.kernel.buffers[loop::BufferId(k)].mode;
    if (mode == loop::BufferMode::in || mode == loop::BufferMode::inout) add_once(traffic.reads, bound[k]);
    if (mode == loop::BufferMode::out || mode == loop::BufferMode::inout) add_once(traffic.writes, bound[k]);
  }
  return traffic;
}

}  // namespace

bool Traffic::is_stable(BufferIndex buffer, const loop::Program& program) const {
  size_t writes = writers[buffer].size();
  const loop::ProgramBuffer& b = program.buffers[buffer];
  return b.kind == loop::BufferKind::input ? writes == 0 : writes <= std::max<size_t>(b.pieces, 1);
}

Traffic traffic_of(const loop::Program& program) {
  Traffic traffic;
  traffic.writers.resize(program.buffers.size());
  traffic.readers.resize(program.buffers.size());
  traffic.returned.resize(program.buffers.size());
  for (size_t step = 0; step < program.steps.size(); ++step) {
    StepTraffic one;
    if (const auto* launch = std::get_if<loop::Launch>(&program.steps[step])) {
      one = launch_traffic(*launch);
    } else {
      const auto& call = std::get<target::ExternCall>(program.steps[step]);
      collect_tensors(call.arguments, one.reads);
      for (const target::ExternResult& result : call.results)
        if (result.buffer != target::kNoBuffer) add_once(one.writes, result.buffer);
    }
    for (BufferIndex buffer : one.reads) traffic.readers[buffer].push_back(step);
    for (BufferIndex buffer : one.writes) traffic.writers[buffer].push_back(step);
    traffic.steps.push_back(std::move(one));
  }
  for (const target::ProgramOutput& output : program.outputs)
    if (output.kind == target::ProgramOutput::Kind::tensor) traffic.returned[output.view.buffer] = true;
  return traffic;
}

}  // namespace kerf::sched
