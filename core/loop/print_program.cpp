// Text of programs: the parts around the kernels.
#include <fmt/format.h>

#include "loop/print.h"
#include "sym/text.h"

namespace kerf::loop {

namespace {

using target::BufferIndex;

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out + '"';
}

std::string list(const std::vector<sym::Expr>& items) {
  std::string text;
  for (sym::Expr item : items) text += (text.empty() ? "" : ", ") + sym::to_text(item);
  return fmt::format("[{}]", text);
}

std::string name_of(BufferIndex buffer) {
  return buffer == target::kNoBuffer ? std::string("none") : fmt::format("%{}", buffer);
}

std::string tensor_text(BufferIndex buffer, DType dtype, const std::vector<sym::Expr>& shape,
                        const std::vector<sym::Expr>& strides) {
  return fmt::format("{}: {}{} strides {}", name_of(buffer), to_text(dtype), list(shape), list(strides));
}

std::string view_text(const target::TensorView& view) {
  std::string text = tensor_text(view.buffer, view.dtype, view.shape, view.strides);
  bool at_start = !view.offset.valid() || view.offset.is_constant(0);
  return at_start ? text : fmt::format("{} offset {}", text, sym::to_text(view.offset));
}

std::string_view kind_text(target::TorchConstant::Kind kind) {
  using Kind = target::TorchConstant::Kind;
  switch (kind) {
    case Kind::dtype: return "dtype";
    case Kind::layout: return "layout";
    case Kind::memory_format: return "memory_format";
    case Kind::device: return "device";
  }
  UNREACHABLE("kind of torch constant");
}

std::string arguments_text(const target::ExternArgumentList& arguments);

struct ArgumentText {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(sym::Expr value) const { return "int " + sym::to_text(value); }
  std::string operator()(double value) const { return "float " + to_text(Scalar::of(DType::f64, value)); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const target::TorchConstant& value) const {
    return fmt::format("{} {}", kind_text(value.kind), quoted(value.name));
  }
  std::string operator()(const target::TensorView& view) const { return view_text(view); }
  std::string operator()(const target::ExternArgumentList& items) const {
    return fmt::format("[{}]", arguments_text(items));
  }
};

std::string arguments_text(const target::ExternArgumentList& arguments) {
  std::string text;
  for (const target::ExternArgument& argument : arguments) {
    if (!text.empty()) text += ", ";
    if (!argument.keyword.empty()) text += argument.keyword + " = ";
    text += std::visit(ArgumentText{}, argument.value);
  }
  return text;
}

std::string step_text(const target::ExternCall& call) {
  std::string out = fmt::format("  extern {}({}){}\n", quoted(call.op), arguments_text(call.arguments),
                                call.is_matmul_like ? " matmul_like" : "");
  for (const target::ExternResult& result : call.results)
    out += fmt::format("    result {}\n",
                       tensor_text(result.buffer, result.dtype, result.shape, result.strides));
  if (!call.reason.empty()) out += fmt::format("    reason {}\n", quoted(call.reason));
  if (!call.source.empty()) out += fmt::format("    source {}\n", quoted(call.source));
  return out;
}

std::string step_text(const Launch& launch) {
  std::string out = "  launch ";
  for (size_t i = 0; i < launch.arguments.size(); ++i) out += (i ? ", " : "") + name_of(launch.arguments[i]);
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
  std::string text = fmt::format("  buffer %{} {}: {}[{}] ", index, quoted(buffer.name),
                                 to_text(buffer.dtype), sym::to_text(buffer.elements));
  switch (buffer.kind) {
    case BufferKind::input: text += fmt::format("input {}", buffer.input_index); break;
    case BufferKind::temp: text += "temp"; break;
    case BufferKind::output: text += "output"; break;
  }
  return text + (buffer.written_by_extern ? " from_extern\n" : "\n");
}

std::string source_text(const target::SizeSource& source) {
  std::string text = fmt::format("  size {} = input {}", sym::to_text(source.symbol), source.input);
  return source.dim < 0 ? text + '\n' : fmt::format("{} dim {}\n", text, source.dim);
}

std::string output_text(const target::ProgramOutput& output) {
  using Kind = target::ProgramOutput::Kind;
  switch (output.kind) {
    case Kind::none: return "none";
    case Kind::integer: return "int " + sym::to_text(output.integer);
    case Kind::tensor: break;
  }
  std::string text = view_text(output.view);
  return output.alias_input < 0 ? text : fmt::format("{} alias {}", text, output.alias_input);
}

}  // namespace

std::string to_text(const Program& program) {
  std::string out =
      program.sizes.empty() ? "program\n" : fmt::format("program given {}\n", to_text(program.sizes));
  for (const target::SizeSource& source : program.size_sources) out += source_text(source);
  for (BufferIndex i = 0; i < program.buffers.size(); ++i) out += buffer_text(i, program.buffers[i]);
  for (const auto& step : program.steps) out += std::visit([](const auto& s) { return step_text(s); }, step);
  for (const target::ProgramOutput& output : program.outputs)
    out += fmt::format("  return {}\n", output_text(output));
  return out;
}

}  // namespace kerf::loop
