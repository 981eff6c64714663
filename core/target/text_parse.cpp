#include <fmt/format.h>

#include <charconv>

#include "sym/text.h"
#include "target/text.h"

namespace kerf::target {

using base::TokenKind;

namespace {

constexpr int kMaxNesting = 100;  // lists in lists; keeps damaged texts off the stack's end

}  // namespace

std::string Reader::string() {
  if (lexer_.peek().kind != TokenKind::string) lexer_.fail("expected a string");
  return lexer_.next().text;
}

DType Reader::dtype() {
  std::optional<DType> dtype = dtype_from_text(lexer_.peek().text);
  if (!dtype) lexer_.fail("expected a dtype");
  lexer_.next();
  return *dtype;
}

int Reader::index() {
  int64_t value = lexer_.expect_integer();
  if (value < 0 || value > 1'000'000) lexer_.fail("expected a small number before this");
  return static_cast<int>(value);
}

sym::Expr Reader::expression() {
  return sym::parse_expr(lexer_, context_, [this](base::Lexer& lexer, const std::string& name) {
    for (sym::Expr size : sizes_)
      if (size.symbol().name == name) return size;
    lexer.fail(fmt::format("'{}' is not a size", name));
  });
}

std::vector<sym::Expr> Reader::expressions() {
  std::vector<sym::Expr> list;
  lexer_.expect("[");
  if (lexer_.accept("]")) return list;
  do list.push_back(expression());
  while (lexer_.accept(","));
  lexer_.expect("]");
  return list;
}

BufferIndex Reader::buffer() {
  BufferIndex index = kNoBuffer;
  const std::string& text = lexer_.peek().text;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  bool is_number = error == std::errc() && end == text.data() + text.size();
  if (lexer_.peek().kind != TokenKind::value || !is_number || index >= buffer_count_)
    lexer_.fail("expected a buffer declared above");
  lexer_.next();
  return index;
}

TensorView Reader::tensor() {
  TensorView view;
  if (!lexer_.accept("none")) view.buffer = buffer();
  lexer_.expect(":");
  view.dtype = dtype();
  view.shape = expressions();
  lexer_.expect("strides");
  view.strides = expressions();
  return view;
}

TensorView Reader::view() {
  TensorView view = tensor();
  view.offset = lexer_.accept("offset") ? expression() : context_.constant(0);
  return view;
}

SizeSource Reader::size_source() {
  SizeSource source{.symbol = expression(), .dim = -1};
  if (!source.symbol.is_symbol()) lexer_.fail("expected the name of a size before this");
  lexer_.expect("=");
  lexer_.expect("input");
  source.input = index();
  if (lexer_.accept("dim")) source.dim = index();
  return source;
}

ProgramOutput Reader::output() {
  ProgramOutput output;
  if (lexer_.accept("none")) return output;
  if (lexer_.accept("int")) {
    output.kind = ProgramOutput::Kind::integer;
    output.integer = expression();
    return output;
  }
  output.kind = ProgramOutput::Kind::tensor;
  output.view = view();
  if (lexer_.accept("alias")) output.alias_input = index();
  return output;
}

ExternCall Reader::extern_call() {
  ExternCall call;
  call.op = string();
  lexer_.expect("(");
  call.arguments = arguments(")");
  call.is_matmul_like = lexer_.accept("matmul_like");
  while (lexer_.accept("result")) call.results.push_back(result());
  if (lexer_.accept("reason")) call.reason = string();
  if (lexer_.accept("source")) call.source = string();
  return call;
}

ExternResult Reader::result() {
  TensorView view = tensor();
  return {.buffer = view.buffer,
          .dtype = view.dtype,
          .shape = std::move(view.shape),
          .strides = std::move(view.strides),
          .is_opaque = lexer_.accept("opaque")};
}

ExternArgumentList Reader::arguments(std::string_view closing) {
  ExternArgumentList list;
  if (lexer_.accept(closing)) return list;
  if (++nesting_ > kMaxNesting) lexer_.fail("lists nested too deeply");
  do {
    ExternArgument argument;
    if (lexer_.is("=", 1)) {
      argument.keyword = lexer_.expect_identifier("a keyword");
      lexer_.expect("=");
    }
    argument.value = argument_value();
    list.push_back(std::move(argument));
  } while (lexer_.accept(","));
  lexer_.expect(closing);
  --nesting_;
  return list;
}

decltype(ExternArgument::value) Reader::argument_value() {
  using Kind = TorchConstant::Kind;
  if (lexer_.peek().kind == TokenKind::string) return string();
  if (lexer_.peek().kind == TokenKind::value) return view();
  if (lexer_.accept("none")) return std::monostate{};
  if (lexer_.accept("true")) return true;
  if (lexer_.accept("false")) return false;
  if (lexer_.accept("int")) return expression();
  if (lexer_.accept("float")) return lexer_.expect_number();
  if (lexer_.accept("dtype")) return TorchConstant{Kind::dtype, string()};
  if (lexer_.accept("layout")) return TorchConstant{Kind::layout, string()};
  if (lexer_.accept("memory_format")) return TorchConstant{Kind::memory_format, string()};
  if (lexer_.accept("device")) return TorchConstant{Kind::device, string()};
  if (lexer_.accept("[")) return arguments("]");
  lexer_.fail("expected an argument");
}

}  // namespace kerf::target
