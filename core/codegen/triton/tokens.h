#pragma once
// The lexer of kernel files: Python's tokens, with `newline` at the end of a statement and `indent` and `dedent` around
// blocks; inside brackets lines do not count. base/lexer.h is that of Kerf's own text forms.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kerf::triton {

enum class TokenKind : uint8_t { name, integer, floating, string, symbol, newline, indent, dedent, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  // of a string: what is between the quotes
  int line = 0;
  int column = 0;  // from 1
};

// ParseError for a string without end, brackets that do not match, or a block that ends between two others. The tokens
// refer to `text`.
std::vector<Token> tokenize(std::string_view text);

// For messages: "the end of the line", "'x'".
std::string describe(const Token& token);

}  // namespace kerf::triton
