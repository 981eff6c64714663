#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "sym/text.h"
#include "target/text.h"

namespace kerf::target {

namespace {

std::string tensor_text(BufferIndex buffer, DType dtype, std::span<const sym::Expr> shape,
                        std::span<const sym::Expr> strides) {
  std::string name = buffer == kNoBuffer ? std::string("none") : fmt::format("%{}", buffer);
  return fmt::format("{}: {}{} strides {}", name, kerf::to_text(dtype), to_text(shape), to_text(strides));
}

// The shortest digits that give the same number back.
std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fmt::format("{}", value);
}

std::string_view kind_text(TorchConstant::Kind kind) {
  using Kind = TorchConstant::Kind;
  switch (kind) {
    case Kind::dtype: return "dtype";
    case Kind::layout: return "layout";
    case Kind::memory_format: return "memory_format";
    case Kind::device: return "device";
  }
  UNREACHABLE("kind of torch constant");
}

std::string arguments_text(const ExternArgumentList& arguments);

struct ArgumentText {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(sym::Expr value) const { return "int " + sym::to_text(value); }
  std::string operator()(double value) const { return "float " + number_text(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const TorchConstant& value) const {
    return fmt::format("{} {}", kind_text(value.kind), quoted(value.name));
  }
  std::string operator()(const TensorView& view) const { return to_text(view); }
  std::string operator()(const ExternArgumentList& items) const {
    return fmt::format("[{}]", arguments_text(items));
  }
};

std::string arguments_text(const ExternArgumentList& arguments) {
  std::string text;
  for (const ExternArgument& argument : arguments) {
    if (!text.empty()) text += ", ";
    if (!argument.keyword.empty()) text += argument.keyword + " = ";
    text += std::visit(ArgumentText{}, argument.value);
  }
  return text;
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string to_text(std::span<const sym::Expr> list) {
  std::string text;
  for (sym::Expr item : list) text += (text.empty() ? "" : ", ") + sym::to_text(item);
  return fmt::format("[{}]", text);
}

std::string to_text(const TensorView& view) {
  std::string text = tensor_text(view.buffer, view.dtype, view.shape, view.strides);
  bool at_start = !view.offset.valid() || view.offset.is_constant(0);
  return at_start ? text : fmt::format("{} offset {}", text, sym::to_text(view.offset));
}

std::string to_text(const SizeSource& source) {
  std::string text = fmt::format("size {} = input {}", sym::to_text(source.symbol), source.input);
  return source.dim < 0 ? text : fmt::format("{} dim {}", text, source.dim);
}

std::string to_text(const ProgramOutput& output) {
  using Kind = ProgramOutput::Kind;
  switch (output.kind) {
    case Kind::none: return "none";
    case Kind::integer: return "int " + sym::to_text(output.integer);
    case Kind::tensor: break;
  }
  std::string text = to_text(output.view);
  return output.alias_input < 0 ? text : fmt::format("{} alias {}", text, output.alias_input);
}

std::string to_text(const ExternCall& call, std::string_view indent) {
  std::string out = fmt::format("{}extern {}({}){}\n", indent, quoted(call.op),
                                arguments_text(call.arguments), call.is_matmul_like ? " matmul_like" : "");
  for (const ExternResult& result : call.results)
    out += fmt::format("{}  result {}{}\n", indent,
                       tensor_text(result.buffer, result.dtype, result.shape, result.strides),
                       result.is_opaque ? " opaque" : "");
  if (!call.reason.empty()) out += fmt::format("{}  reason {}\n", indent, quoted(call.reason));
  if (!call.source.empty()) out += fmt::format("{}  source {}\n", indent, quoted(call.source));
  return out;
}

}  // namespace kerf::target
