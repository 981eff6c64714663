#include "codegen/triton/parse_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <span>

#include "base/error.h"

namespace kerf::triton {

namespace {

// Binary operators from those that bind least; comparisons lie between `not` and `|`.
constexpr std::string_view kOr[] = {"or"};
constexpr std::string_view kAnd[] = {"and"};
constexpr std::string_view kComparisons[] = {"<", "<=", ">", ">=", "==", "!=", "is", "in", "not"};
constexpr std::string_view kBitOr[] = {"|"};
constexpr std::string_view kBitXor[] = {"^"};
constexpr std::string_view kBitAnd[] = {"&"};
constexpr std::string_view kShifts[] = {"<<", ">>"};
constexpr std::string_view kSums[] = {"+", "-"};
constexpr std::string_view kProducts[] = {"*", "/", "//", "%"};
constexpr std::span<const std::string_view> kLevels[] = {kOr,     kAnd,    kComparisons, kBitOr,   kBitXor,
                                                         kBitAnd, kShifts, kSums,        kProducts};
constexpr int kComparisonLevel = 2;
constexpr int kLevelCount = std::size(kLevels);

}  // namespace

ExpressionParser::ExpressionParser(std::string_view text, Expressions& expressions)
    : tokens_(tokenize(text)), expressions_(expressions) {}

const Token& ExpressionParser::peek(int ahead) const {
  return tokens_[std::min(position_ + static_cast<size_t>(ahead), tokens_.size() - 1)];
}

Token ExpressionParser::next() {
  Token token = peek();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool ExpressionParser::is(std::string_view text, int ahead) const {
  const Token& token = peek(ahead);
  return (token.kind == TokenKind::symbol || token.kind == TokenKind::name) && token.text == text;
}

bool ExpressionParser::accept(std::string_view text) { return is(text) && (next(), true); }

bool ExpressionParser::accept(TokenKind kind) { return peek().kind == kind && (next(), true); }

void ExpressionParser::expect(std::string_view text) {
  if (!accept(text)) fail(fmt::format("'{}'", text));
}

std::string ExpressionParser::expect_name(std::string_view what) {
  if (peek().kind != TokenKind::name) fail(what);
  return std::string(next().text);
}

void ExpressionParser::fail(std::string_view expected) const {
  throw ParseError(fmt::format("expected {}, found {}", expected, describe(peek())), peek().line,
                   peek().column);
}

ExpressionId ExpressionParser::make(ExpressionKind kind, int line, std::string_view text,
                                    std::vector<ExpressionId> operands) {
  return expressions_.push_back(
      {.kind = kind, .line = line, .text = std::string(text), .operands = std::move(operands)});
}

ExpressionId ExpressionParser::expression() {
  ExpressionId value = binary(0);
  int line = peek().line;
  if (!accept("if")) return value;
  ExpressionId condition = binary(0);
  expect("else");
  return make(ExpressionKind::conditional, line, "", {condition, value, expression()});
}

ExpressionId ExpressionParser::expression_list() {
  int line = peek().line;
  ExpressionId first = expression();
  if (!is(",")) return first;
  std::vector<ExpressionId> items = {first};
  while (accept(",")) {
    if (peek().kind == TokenKind::newline || is("=")) break;
    items.push_back(expression());
  }
  return make(ExpressionKind::tuple, line, "", std::move(items));
}

ExpressionId ExpressionParser::binary(int level) {
  if (level == kLevelCount) return unary();
  if (level == kComparisonLevel && is("not")) {
    int line = next().line;
    return make(ExpressionKind::unary, line, "not", {binary(level)});
  }
  ExpressionId left = binary(level + 1);
  auto is_operator = [&] { return std::ranges::any_of(kLevels[level], [&](auto text) { return is(text); }); };
  bool is_comparison = level == kComparisonLevel;
  for (int count = 0; is_operator(); ++count) {
    if (is_comparison && count > 0) fail("one comparison (join two by `&`)");
    Token token = next();
    std::string text(token.text);
    if (text == "is" && accept("not")) text = "is not";
    if (text == "not") expect("in"), text = "not in";
    left = make(is_comparison ? ExpressionKind::comparison : ExpressionKind::binary, token.line, text,
                {left, binary(level + 1)});
  }
  return left;
}

ExpressionId ExpressionParser::unary() {
  for (std::string_view text : {"-", "+", "~"}) {
    int line = peek().line;
    if (accept(text)) return make(ExpressionKind::unary, line, text, {unary()});
  }
  ExpressionId base = postfix();
  int line = peek().line;
  if (!accept("**")) return base;
  return make(ExpressionKind::binary, line, "**", {base, unary()});
}

ExpressionId ExpressionParser::postfix() {
  ExpressionId value = atom();
  while (true) {
    int line = peek().line;
    if (accept(".")) {
      std::string name = expect_name("the name of an attribute");
      value = make(ExpressionKind::attribute, line, name, {value});
    } else if (accept("(")) {
      value = call(value);
    } else if (accept("[")) {
      value = subscript(value);
    } else {
      return value;
    }
  }
}

ExpressionId ExpressionParser::call(ExpressionId function) {
  std::vector<ExpressionId> operands = {function};
  std::vector<std::string> keywords;
  while (!accept(")")) {
    bool is_keyword = peek().kind == TokenKind::name && is("=", 1);
    if (is_keyword) {
      keywords.emplace_back(next().text);
      next();
    } else if (!keywords.empty()) {
      fail("an argument with a name");
    }
    operands.push_back(expression());
    if (!is(")")) expect(",");
  }
  int line = at(function).line;
  ExpressionId id = make(ExpressionKind::call, line, "", std::move(operands));
  expressions_[id].keywords = std::move(keywords);
  return id;
}

ExpressionId ExpressionParser::subscript(ExpressionId base) {
  std::vector<ExpressionId> operands = {base};
  while (!accept("]")) {
    int line = peek().line;
    if (is(":") && (is(",", 1) || is("]", 1))) {
      next();
      operands.push_back(make(ExpressionKind::slice, line, ":"));
    } else {
      operands.push_back(expression());
    }
    if (!is("]")) expect(",");
  }
  int line = at(base).line;
  return make(ExpressionKind::subscript, line, "", std::move(operands));
}

ExpressionId ExpressionParser::number() {
  Token token = next();
  std::string digits(token.text);
  std::erase(digits, '_');
  bool is_integer = token.kind == TokenKind::integer;
  ExpressionId id =
      make(is_integer ? ExpressionKind::integer : ExpressionKind::floating, token.line, token.text);
  errno = 0;
  expressions_[id].floating = std::strtod(digits.c_str(), nullptr);
  if (is_integer) expressions_[id].integer = std::strtoll(digits.c_str(), nullptr, 0);
  if (is_integer && errno == ERANGE)
    throw ParseError(fmt::format("{} does not fit 64 bits", digits), token.line, token.column);
  return id;
}

std::vector<ExpressionId> ExpressionParser::items_until(std::string_view end) {
  std::vector<ExpressionId> items;
  while (!accept(end)) {
    items.push_back(expression());
    if (!is(end)) expect(",");
  }
  return items;
}

ExpressionId ExpressionParser::parenthesised() {
  int line = next().line;
  if (accept(")")) return make(ExpressionKind::tuple, line, "");
  ExpressionId first = expression();
  if (accept(")")) return first;
  expect(",");
  std::vector<ExpressionId> items = {first};
  for (ExpressionId item : items_until(")")) items.push_back(item);
  return make(ExpressionKind::tuple, line, "", std::move(items));
}

ExpressionId ExpressionParser::dictionary() {
  int line = next().line;
  std::vector<ExpressionId> operands;
  while (!accept("}")) {
    operands.push_back(expression());
    expect(":");
    operands.push_back(expression());
    if (!is("}")) expect(",");
  }
  return make(ExpressionKind::dictionary, line, "", std::move(operands));
}

ExpressionId ExpressionParser::atom() {
  const Token& token = peek();
  int line = token.line;
  switch (token.kind) {
    case TokenKind::integer:
    case TokenKind::floating: return number();
    case TokenKind::string: return make(ExpressionKind::string, line, next().text);
    case TokenKind::name: {
      bool is_constant = token.text == "True" || token.text == "False" || token.text == "None";
      return make(is_constant ? ExpressionKind::constant : ExpressionKind::name, line, next().text);
    }
    default: break;
  }
  if (is("(")) return parenthesised();
  if (accept("[")) return make(ExpressionKind::list, line, "", items_until("]"));
  if (is("{")) return dictionary();
  fail("an expression");
}

}  // namespace kerf::triton
