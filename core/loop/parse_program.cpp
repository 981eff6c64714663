// Reads programs: the parts around the kernels.
#include <fmt/format.h>

#include "loop/parse.h"
#include "target/text.h"

namespace kerf::loop {

namespace {

using base::TokenKind;

class ProgramParser {
 public:
  ProgramParser(std::string_view text, sym::Context& context) : lexer_(text), reader_(lexer_, context) {
    program_.context = &context;
  }

  Program parse() {
    lexer_.expect("program");
    if (lexer_.accept("given")) program_.sizes = parse_sizes(lexer_, *program_.context);
    for (const Size& size : program_.sizes) reader_.add_size(size.symbol);
    while (!lexer_.at_end()) item();
    return std::move(program_);
  }

 private:
  void item() {
    if (!lexer_.peek().begins_line) lexer_.fail("expected the end of the line");
    if (lexer_.accept("size")) {
      program_.size_sources.push_back(reader_.size_source());
    } else if (lexer_.accept("buffer")) {
      buffer();
    } else if (lexer_.accept("launch")) {
      launch();
    } else if (lexer_.accept("extern")) {
      program_.steps.emplace_back(reader_.extern_call());
    } else if (lexer_.accept("return")) {
      program_.outputs.push_back(reader_.output());
    } else {
      lexer_.fail("expected size, buffer, launch, extern or return");
    }
  }

  // `%3` declares in order, so its number is its index.
  void buffer() {
    if (lexer_.peek().text != std::to_string(program_.buffers.size()))
      lexer_.fail(fmt::format("expected %{}, the next buffer", program_.buffers.size()));
    lexer_.expect_value();
    ProgramBuffer buffer;
    buffer.name = reader_.string();
    lexer_.expect(":");
    buffer.dtype = reader_.dtype();
    lexer_.expect("[");
    buffer.elements = reader_.expression();
    lexer_.expect("]");
    if (lexer_.accept("input")) {
      buffer.kind = BufferKind::input;
      buffer.input_index = reader_.index();
      buffer.ends = lexer_.accept("ends");
    } else if (lexer_.accept("output")) {
      buffer.kind = BufferKind::output;
    } else {
      lexer_.expect("temp");
      buffer.realised = lexer_.accept("realised");
    }
    buffer.written_by_extern = lexer_.accept("from_extern");
    if (lexer_.accept("pieces")) buffer.pieces = reader_.index();
    program_.buffers.push_back(std::move(buffer));
    reader_.set_buffer_count(program_.buffers.size());
  }

  void launch() {
    Launch launch;
    if (lexer_.peek().kind == TokenKind::value) {
      do launch.arguments.push_back(reader_.buffer());
      while (lexer_.accept(","));
    }
    launch.kernel = parse_kernel(lexer_, *program_.context);
    program_.steps.emplace_back(std::move(launch));
  }

  base::Lexer lexer_;
  target::Reader reader_;
  Program program_;
};

}  // namespace

Program parse_program(std::string_view text, sym::Context& context) {
  return ProgramParser(text, context).parse();
}

}  // namespace kerf::loop
