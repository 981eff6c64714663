// Reads programs: the parts around the kernels.
#include <fmt/format.h>

#include <charconv>

#include "loop/parse.h"
#include "sym/text.h"

namespace kerf::loop {

namespace {

using base::TokenKind;
using target::BufferIndex;

class ProgramParser {
 public:
  ProgramParser(std::string_view text, sym::Context& context) : lexer_(text) { program_.context = &context; }

  Program parse() {
    lexer_.expect("program");
    if (lexer_.accept("given")) program_.sizes = parse_sizes(lexer_, *program_.context);
    while (!lexer_.at_end()) item();
    return std::move(program_);
  }

 private:
  void item() {
    if (!lexer_.peek().begins_line) lexer_.fail("expected the end of the line");
    if (lexer_.accept("size")) {
      size_source();
    } else if (lexer_.accept("buffer")) {
      buffer();
    } else if (lexer_.accept("launch")) {
      launch();
    } else if (lexer_.accept("extern")) {
      extern_call();
    } else if (lexer_.accept("return")) {
      program_.outputs.push_back(output());
    } else {
      lexer_.fail("expected size, buffer, launch, extern or return");
    }
  }

  int small_integer() {
    int64_t value = lexer_.expect_integer();
    if (value < 0 || value > 1'000'000) lexer_.fail("expected a small number before this");
    return static_cast<int>(value);
  }

  void size_source() {
    target::SizeSource source{.symbol = expression(), .dim = -1};
    if (!source.symbol.is_symbol()) lexer_.fail("expected the name of a size before this");
    lexer_.expect("=");
    lexer_.expect("input");
    source.input = small_integer();
    if (lexer_.accept("dim")) source.dim = small_integer();
    program_.size_sources.push_back(source);
  }

  // `%3` declares in order, so its number is its index.
  void buffer() {
    if (lexer_.peek().text != std::to_string(program_.buffers.size()))
      lexer_.fail(fmt::format("expected %{}, the next buffer", program_.buffers.size()));
    lexer_.expect_value();
    ProgramBuffer buffer;
    buffer.name = string();
    lexer_.expect(":");
    buffer.dtype = dtype();
    lexer_.expect("[");
    buffer.elements = expression();
    lexer_.expect("]");
    if (lexer_.accept("input")) {
      buffer.kind = BufferKind::input;
      buffer.input_index = small_integer();
    } else if (lexer_.accept("output")) {
      buffer.kind = BufferKind::output;
    } else {
      lexer_.expect("temp");
    }
    buffer.written_by_extern = lexer_.accept("from_extern");
    program_.buffers.push_back(std::move(buffer));
  }

  void launch() {
    Launch launch;
    if (lexer_.peek().kind == TokenKind::value) {
      do launch.arguments.push_back(buffer_use());
      while (lexer_.accept(","));
    }
    launch.kernel = parse_kernel(lexer_, *program_.context);
    program_.steps.emplace_back(std::move(launch));
  }

  void extern_call() {
    target::ExternCall call;
    call.op = string();
    lexer_.expect("(");
    call.arguments = arguments(")");
    call.is_matmul_like = lexer_.accept("matmul_like");
    while (lexer_.accept("result")) {
      target::TensorView view = tensor();
      call.results.push_back({view.buffer, view.dtype, view.shape, view.strides});
    }
    if (lexer_.accept("reason")) call.reason = string();
    if (lexer_.accept("source")) call.source = string();
    program_.steps.emplace_back(std::move(call));
  }

  target::ExternArgumentList arguments(std::string_view closing) {
    target::ExternArgumentList list;
    if (lexer_.accept(closing)) return list;
    do {
      target::ExternArgument argument;
      if (lexer_.is("=", 1)) {
        argument.keyword = lexer_.expect_identifier("a keyword");
        lexer_.expect("=");
      }
      argument.value = argument_value();
      list.push_back(std::move(argument));
    } while (lexer_.accept(","));
    lexer_.expect(closing);
    return list;
  }

  decltype(target::ExternArgument::value) argument_value() {
    using Kind = target::TorchConstant::Kind;
    if (lexer_.peek().kind == TokenKind::string) return string();
    if (lexer_.peek().kind == TokenKind::value) return view();
    if (lexer_.accept("none")) return std::monostate{};
    if (lexer_.accept("true")) return true;
    if (lexer_.accept("false")) return false;
    if (lexer_.accept("int")) return expression();
    if (lexer_.accept("float")) return lexer_.expect_number();
    if (lexer_.accept("dtype")) return target::TorchConstant{Kind::dtype, string()};
    if (lexer_.accept("layout")) return target::TorchConstant{Kind::layout, string()};
    if (lexer_.accept("memory_format")) return target::TorchConstant{Kind::memory_format, string()};
    if (lexer_.accept("device")) return target::TorchConstant{Kind::device, string()};
    if (lexer_.accept("[")) return arguments("]");
    lexer_.fail("expected an argument");
  }

  target::ProgramOutput output() {
    using Kind = target::ProgramOutput::Kind;
    target::ProgramOutput output;
    if (lexer_.accept("none")) return output;
    if (lexer_.accept("int")) {
      output.kind = Kind::integer;
      output.integer = expression();
      return output;
    }
    output.kind = Kind::tensor;
    output.view = view();
    if (lexer_.accept("alias")) output.alias_input = small_integer();
    return output;
  }

  target::TensorView view() {
    target::TensorView view = tensor();
    view.offset = lexer_.accept("offset") ? expression() : program_.context->constant(0);
    return view;
  }

  // `none` in place of a buffer is a result that is not used.
  target::TensorView tensor() {
    target::TensorView view;
    if (!lexer_.accept("none")) view.buffer = buffer_use();
    lexer_.expect(":");
    view.dtype = dtype();
    view.shape = expressions();
    lexer_.expect("strides");
    view.strides = expressions();
    return view;
  }

  BufferIndex buffer_use() {
    BufferIndex index = target::kNoBuffer;
    const std::string& text = lexer_.peek().text;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
    bool is_number = error == std::errc() && end == text.data() + text.size();
    if (lexer_.peek().kind != TokenKind::value || !is_number || index >= program_.buffers.size())
      lexer_.fail("expected a buffer declared above");
    lexer_.next();
    return index;
  }

  std::string string() {
    if (lexer_.peek().kind != TokenKind::string) lexer_.fail("expected a string");
    return lexer_.next().text;
  }

  DType dtype() {
    std::optional<DType> dtype = dtype_from_text(lexer_.peek().text);
    if (!dtype) lexer_.fail("expected a dtype");
    lexer_.next();
    return *dtype;
  }

  std::vector<sym::Expr> expressions() {
    std::vector<sym::Expr> list;
    lexer_.expect("[");
    if (lexer_.accept("]")) return list;
    do list.push_back(expression());
    while (lexer_.accept(","));
    lexer_.expect("]");
    return list;
  }

  sym::Expr expression() {
    return sym::parse_expr(lexer_, *program_.context, [this](base::Lexer& lexer, const std::string& name) {
      for (const Size& size : program_.sizes)
        if (size.symbol.symbol().name == name) return size.symbol;
      lexer.fail(fmt::format("'{}' is not a size of the program", name));
    });
  }

  base::Lexer lexer_;
  Program program_;
};

}  // namespace

Program parse_program(std::string_view text, sym::Context& context) {
  return ProgramParser(text, context).parse();
}

}  // namespace kerf::loop
