#include "base/lexer.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace kerf::base {

namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool continues_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

constexpr std::string_view kTwoCharacterSymbols[] = {"//", "==", "!=", "<=", ">=", "->"};

}  // namespace

Lexer::Lexer(std::string_view text) {
  size_t i = 0;
  int line = 1;
  size_t line_start = 0;
  bool begins_line = true;
  auto column = [&] { return static_cast<int>(i - line_start) + 1; };
  while (i < text.size()) {
    char c = text[i];
    if (c == '\n') {
      ++i, ++line, line_start = i, begins_line = true;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r') {
      ++i;
      continue;
    }
    if (c == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
      continue;
    }
    Token token;
    token.line = line;
    token.column = column();
    token.begins_line = begins_line;
    begins_line = false;
    size_t start = i;
    if (starts_name(c)) {
      while (i < text.size() && continues_name(text[i])) ++i;
      token.kind = TokenKind::identifier;
      token.text = text.substr(start, i - start);
    } else if (c == '%' && i + 1 < text.size() && continues_name(text[i + 1])) {
      ++i;
      while (i < text.size() && continues_name(text[i])) ++i;
      token.kind = TokenKind::value;
      token.text = text.substr(start + 1, i - start - 1);
    } else if (is_digit(c)) {
      while (i < text.size() && is_digit(text[i])) ++i;
      bool floating = false;
      if (i + 1 < text.size() && text[i] == '.' && is_digit(text[i + 1])) {
        floating = true;
        ++i;
        while (i < text.size() && is_digit(text[i])) ++i;
      }
      if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
        size_t j = i + 1;
        if (j < text.size() && (text[j] == '+' || text[j] == '-')) ++j;
        if (j < text.size() && is_digit(text[j])) {
          floating = true;
          while (j < text.size() && is_digit(text[j])) ++j;
          i = j;
        }
      }
      token.text = text.substr(start, i - start);
      token.floating = std::strtod(token.text.c_str(), nullptr);
      if (floating) {
        token.kind = TokenKind::floating;
      } else {
        token.kind = TokenKind::integer;
        errno = 0;
        token.integer = static_cast<int64_t>(std::strtoull(token.text.c_str(), nullptr, 10));
        if (errno == ERANGE) throw ParseError("integer out of range", line, token.column);
      }
    } else if (c == '"') {
      ++i;
      token.kind = TokenKind::string;
      while (i < text.size() && text[i] != '"') {
        if (text[i] == '\n') break;
        if (text[i] == '\\' && i + 1 < text.size()) {
          ++i;
          token.text += text[i] == 'n' ? '\n' : text[i];
        } else {
          token.text += text[i];
        }
        ++i;
      }
      if (i >= text.size() || text[i] != '"') throw ParseError("string without an end", line, token.column);
      ++i;
    } else if (std::ispunct(static_cast<unsigned char>(c))) {
      token.kind = TokenKind::symbol;
      token.text = std::string(1, c);
      for (std::string_view two : kTwoCharacterSymbols)
        if (text.substr(i, 2) == two) token.text = two;
      i += token.text.size();
    } else {
      throw ParseError(fmt::format("unexpected character 0x{:02x}", static_cast<unsigned char>(c)), line,
                       token.column);
    }
    tokens_.push_back(std::move(token));
  }
  Token end;
  end.line = line;
  end.column = column();
  end.begins_line = true;
  tokens_.push_back(end);
}

const Token& Lexer::peek(int ahead) const {
  size_t at = position_ + static_cast<size_t>(ahead);
  return at < tokens_.size() ? tokens_[at] : tokens_.back();
}

Token Lexer::next() {
  Token token = peek();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool Lexer::is(std::string_view text, int ahead) const {
  const Token& token = peek(ahead);
  return (token.kind == TokenKind::symbol || token.kind == TokenKind::identifier) && token.text == text;
}

bool Lexer::accept(std::string_view text) {
  if (!is(text)) return false;
  next();
  return true;
}

void Lexer::expect(std::string_view text) {
  if (!accept(text)) fail(fmt::format("expected '{}'", text));
}

std::string Lexer::expect_identifier(std::string_view what) {
  if (peek().kind != TokenKind::identifier) fail(fmt::format("expected {}", what));
  return next().text;
}

std::string Lexer::expect_value() {
  if (peek().kind != TokenKind::value) fail("expected a value such as %0");
  return next().text;
}

int64_t Lexer::expect_integer() {
  bool negative = accept("-");
  if (peek().kind != TokenKind::integer) fail("expected an integer");
  // The minimum of int64 has no positive counterpart: negate as unsigned.
  uint64_t magnitude = static_cast<uint64_t>(next().integer);
  return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
}

double Lexer::expect_number() {
  bool negative = accept("-");
  double value = 0;
  if (accept("inf")) {
    value = std::numeric_limits<double>::infinity();
  } else if (accept("nan")) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (peek().kind == TokenKind::integer || peek().kind == TokenKind::floating) {
    value = next().floating;
  } else {
    fail("expected a number");
  }
  return negative ? -value : value;
}

void Lexer::fail(std::string_view message) const {
  const Token& token = peek();
  std::string found = token.kind == TokenKind::end ? "the end of the text" : fmt::format("'{}'", token.text);
  throw ParseError(fmt::format("{}, found {}", message, found), token.line, token.column);
}

}  // namespace kerf::base
