#include "codegen/triton/parse_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "codegen/triton/parse_expression.h"

namespace kerf::triton {

namespace {

// --- statements

constexpr std::string_view kAssignments[] = {"+=", "-=", "*=", "/=", "//=", "%=", "&=", "|=", "^="};

class StatementParser {
 public:
  explicit StatementParser(ExpressionParser& tokens) : tokens_(tokens) {}

  std::vector<Statement> block() {
    tokens_.expect(":");
    std::vector<Statement> statements;
    if (!tokens_.accept(TokenKind::newline)) {
      statements.push_back(simple());
      return statements;
    }
    if (!tokens_.accept(TokenKind::indent)) tokens_.fail("an indented block");
    while (!tokens_.accept(TokenKind::dedent)) statements.push_back(statement());
    return statements;
  }

 private:
  Statement statement() {
    if (tokens_.is("for")) return loop();
    if (tokens_.is("if")) return branch();
    return simple();
  }

  Statement loop() {
    Statement result{.kind = StatementKind::loop, .line = tokens_.next().line};
    result.names.push_back(tokens_.expect_name("the variable of the loop"));
    tokens_.expect("in");
    result.value = tokens_.expression();
    result.body = block();
    return result;
  }

  Statement branch() {
    Statement result{.kind = StatementKind::branch, .line = tokens_.next().line};
    result.value = tokens_.expression();
    result.body = block();
    if (tokens_.is("elif"))
      result.otherwise.push_back(branch());
    else if (tokens_.accept("else"))
      result.otherwise = block();
    return result;
  }

  Statement simple() {
    for (std::string_view word : {"while", "with", "try", "def", "class", "import", "from", "assert", "del"})
      if (tokens_.is(word)) tokens_.fail("an assignment, `for`, `if`, `return`, `pass` or a call");
    Statement result{.line = tokens_.peek().line};
    if (tokens_.accept("pass")) {
      result.kind = StatementKind::pass;
    } else if (tokens_.accept("return")) {
      result.kind = StatementKind::give;
      if (tokens_.peek().kind != TokenKind::newline) result.value = tokens_.expression_list();
    } else {
      assignment(result);
    }
    if (!tokens_.accept(TokenKind::newline)) tokens_.fail("the end of the statement");
    return result;
  }

  void assignment(Statement& result) {
    result.kind = StatementKind::evaluate;
    result.value = tokens_.expression_list();
    for (std::string_view text : kAssignments)
      if (tokens_.is(text)) {
        tokens_.next();
        result.names = names_of(result.value);
        result.operation = text.substr(0, text.size() - 1);
        result.kind = StatementKind::assign;
        result.value = tokens_.expression();
        return;
      }
    if (tokens_.accept(":")) tokens_.expression();  // an annotation
    if (!tokens_.accept("=")) return;
    result.names = names_of(result.value);
    result.kind = StatementKind::assign;
    result.value = tokens_.expression_list();
  }

  std::vector<std::string> names_of(ExpressionId target) {
    const Expression& expression = tokens_.at(target);
    std::vector<std::string> names;
    if (expression.kind == ExpressionKind::name) names.push_back(expression.text);
    if (expression.kind == ExpressionKind::tuple)
      for (ExpressionId item : expression.operands)
        if (tokens_.at(item).kind == ExpressionKind::name) names.push_back(tokens_.at(item).text);
    if (names.empty() ||
        (expression.kind == ExpressionKind::tuple && names.size() != expression.operands.size()))
      throw ParseError("only names can be assigned", expression.line, 1);
    return names;
  }

  ExpressionParser& tokens_;
};

Function parse_function(ExpressionParser& tokens) {
  Function function{.line = tokens.next().line};
  function.name = tokens.expect_name("the name of the function");
  tokens.expect("(");
  while (!tokens.accept(")")) {
    Parameter parameter{.name = tokens.expect_name("a parameter")};
    if (tokens.accept(":")) parameter.annotation = tokens.expression();
    if (tokens.accept("=")) parameter.default_value = tokens.expression();
    function.parameters.push_back(std::move(parameter));
    if (!tokens.is(")")) tokens.expect(",");
  }
  function.body = StatementParser(tokens).block();
  return function;
}

// --- KERNEL

class KernelReader {
 public:
  KernelReader(const Expressions& expressions, ExpressionId kernel)
      : expressions_(expressions), kernel_(expressions[kernel]) {}

  void read(KernelFile& file) const {
    file.line = kernel_.line;
    file.target = text(field(kernel_, "target"));
    for (ExpressionId item : field(kernel_, "buffers").operands)
      file.buffers.push_back(buffer(expressions_[item]));
    file.extents = integers(field(kernel_, "extents"));
    for (ExpressionId item : field(kernel_, "blocks").operands)
      file.blocks.push_back(integers(expressions_[item]));
    for (ExpressionId item : field(kernel_, "grid").operands) {
      const Expression& pair = expressions_[item];
      if (pair.operands.size() != 2) throw ParseError("expected [extent, block]", pair.line, 1);
      file.grid.emplace_back(word(expressions_[pair.operands[0]]), word(expressions_[pair.operands[1]]));
    }
    if (const Expression* cores = find(kernel_, "cores")) file.cores = integer(*cores);
    std::string name = text(field(kernel_, "name"));
    auto found = std::ranges::find(file.functions, name, &Function::name);
    if (found == file.functions.end())
      throw ParseError(fmt::format("there is no function {} under triton.jit", name), kernel_.line, 1);
    file.kernel = static_cast<size_t>(found - file.functions.begin());
  }

 private:
  const Expression* find(const Expression& dictionary, std::string_view key) const {
    for (size_t i = 0; i + 1 < dictionary.operands.size(); i += 2)
      if (expressions_[dictionary.operands[i]].text == key) return &expressions_[dictionary.operands[i + 1]];
    return nullptr;
  }

  const Expression& field(const Expression& dictionary, std::string_view key) const {
    const Expression* found = find(dictionary, key);
    if (!found) throw ParseError(fmt::format("KERNEL lacks \"{}\"", key), dictionary.line, 1);
    return *found;
  }

  std::string text(const Expression& expression) const {
    if (expression.kind != ExpressionKind::string) throw ParseError("expected a string", expression.line, 1);
    return expression.text;
  }

  // A name or a number.
  std::string word(const Expression& expression) const {
    return expression.kind == ExpressionKind::integer ? fmt::format("{}", expression.integer)
                                                      : text(expression);
  }

  int64_t integer(const Expression& expression) const {
    if (expression.kind != ExpressionKind::integer)
      throw ParseError("expected an integer", expression.line, 1);
    return expression.integer;
  }

  NamedIntegers integers(const Expression& dictionary) const {
    NamedIntegers result;
    for (size_t i = 0; i + 1 < dictionary.operands.size(); i += 2)
      result.emplace_back(text(expressions_[dictionary.operands[i]]),
                          integer(expressions_[dictionary.operands[i + 1]]));
    return result;
  }

  FileBuffer buffer(const Expression& dictionary) const {
    std::string name = text(field(dictionary, "dtype"));
    std::optional<DType> dtype = dtype_from_text(name);
    if (!dtype) throw ParseError(fmt::format("no dtype '{}'", name), dictionary.line, 1);
    return {text(field(dictionary, "name")), *dtype, integer(field(dictionary, "elements"))};
  }

  const Expressions& expressions_;
  const Expression& kernel_;
};

// --- the file

void skip_statement(ExpressionParser& tokens) {
  while (!tokens.accept(TokenKind::newline) && tokens.peek().kind != TokenKind::end) tokens.next();
  if (!tokens.accept(TokenKind::indent)) return;
  for (int depth = 1; depth > 0; tokens.next()) {
    if (tokens.peek().kind == TokenKind::indent) ++depth;
    if (tokens.peek().kind == TokenKind::dedent) --depth;
  }
}

// Whether one of the decorators before a function is triton.jit.
bool parse_decorators(ExpressionParser& tokens) {
  bool is_jit = false;
  while (tokens.accept("@")) {
    is_jit |= tokens.is("triton") && tokens.is(".", 1) && tokens.is("jit", 2);
    tokens.expression();
    if (!tokens.accept(TokenKind::newline)) tokens.fail("the end of the line");
  }
  return is_jit;
}

}  // namespace

KernelFile parse_text(std::string_view text) {
  KernelFile file;
  ExpressionParser tokens(text, file.expressions);
  ExpressionId kernel;
  while (tokens.peek().kind != TokenKind::end) {
    if (parse_decorators(tokens)) {
      file.functions.push_back(parse_function(tokens));
    } else if (tokens.is("KERNEL") && tokens.is("=", 1)) {
      tokens.next(), tokens.next();
      if (!tokens.is("{")) tokens.fail("the dictionary of the kernel");
      kernel = tokens.expression();
    } else {
      skip_statement(tokens);
    }
  }
  if (file.functions.empty()) tokens.fail("a function under `@triton.jit`");
  if (!kernel.valid()) tokens.fail("`KERNEL = {...}`");
  KernelReader(file.expressions, kernel).read(file);
  return file;
}

}  // namespace kerf::triton
