#pragma once
// The one lexer of all text forms (sym, graph, loop, plan). Blocks are marked by indentation: every token
// carries its column and whether it begins a line, and `in_block(parent_column)` tells a parser whether the
// next token still belongs to a block opened by a line that began at `parent_column`.
//
//   identifier   [A-Za-z_][A-Za-z0-9_.]*      a dot inside a name is part of it ("aten.add.Tensor")
//   value        %name                        text without the percent sign
//   integer      -?[0-9]+ is two tokens if a sign is present: the parser folds the sign
//   floating     1.5  2e-3  inf  nan          `inf` and `nan` arrive as identifiers; parse_number accepts them
//   string       "..." with \" \\ \n escapes
//   symbol       one of // == != <= >= -> or a single punctuation character
// A comment runs from `#` to the end of the line.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace kerf::base {

enum class TokenKind : uint8_t { identifier, value, integer, floating, string, symbol, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  int64_t integer = 0;
  double floating = 0;
  int line = 0;
  int column = 0;  // from 1
  bool begins_line = false;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text);  // throws ParseError for a character or string it cannot read

  const Token& peek(int ahead = 0) const;
  Token next();
  bool at_end() const { return peek().kind == TokenKind::end; }

  // `text` is a symbol or an identifier.
  bool is(std::string_view text, int ahead = 0) const;
  bool accept(std::string_view text);
  void expect(std::string_view text);
  std::string expect_identifier(std::string_view what);
  std::string expect_value();
  int64_t expect_integer();  // with an optional sign
  double expect_number();    // integer, floating, inf, nan, each with an optional sign
  bool in_block(int parent_column) const { return !at_end() && peek().column > parent_column; }

  [[noreturn]] void fail(std::string_view message) const;  // at the next token

 private:
  std::vector<Token> tokens_;
  size_t position_ = 0;
};

}  // namespace kerf::base
