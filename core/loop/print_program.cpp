// Text of programs: the parts around the kernels.
#include <fmt/format.h>

#include "loop/print.h"
#include "sym/text.h"
#include "target/text.h"

namespace kerf::loop {

namespace {

using target::BufferIndex;

std::string step_text(const target::ExternCall& call) { return target::to_text(call, "  "); }

std::string step_text(const Launch& launch) {
  std::string out = "  launch ";
  for (size_t i = 0; i < launch.arguments.size(); ++i)
    out += fmt::format("{}%{}", i ? ", " : "", launch.arguments[i]);
  out += '\n';
  std::string kernel = to_text(launch.kernel);
  for (size_t begin = 0; begin < kernel.size();) {
    size_t end = kernel.find('\n', begin) + 1;
    out += "    " + kernel.substr(begin, end - begin);
    begin = end;
  }
  return out;
}

std::string buffer_text(BufferIndex index, const ProgramBuffer& buffer) {
  std::string text = fmt::format("  buffer %{} {}: {}[{}] ", index, target::quoted(buffer.name),
                                 to_text(buffer.dtype), sym::to_text(buffer.elements));
  switch (buffer.kind) {
    case BufferKind::input:
      text += fmt::format("input {}{}", buffer.input_index, buffer.ends ? " ends" : "");
      break;
    case BufferKind::temp: text += buffer.realised ? "temp realised" : "temp"; break;
    case BufferKind::output: text += "output"; break;
  }
  if (buffer.written_by_extern) text += " from_extern";
  if (buffer.pieces > 0) text += fmt::format(" pieces {}", buffer.pieces);
  return text + '\n';
}

}  // namespace

std::string to_text(const Program& program) {
  std::string out =
      program.sizes.empty() ? "program\n" : fmt::format("program given {}\n", to_text(program.sizes));
  for (const target::SizeSource& source : program.size_sources)
    out += fmt::format("  {}\n", target::to_text(source));
  for (BufferIndex i = 0; i < program.buffers.size(); ++i) out += buffer_text(i, program.buffers[i]);
  for (const auto& step : program.steps) out += std::visit([](const auto& s) { return step_text(s); }, step);
  for (const target::ProgramOutput& output : program.outputs)
    out += fmt::format("  return {}\n", target::to_text(output));
  return out;
}

}  // namespace kerf::loop
