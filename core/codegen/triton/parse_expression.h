#pragma once
// The parser of expressions, and the tokens that it shares with the parser of statements (parse_text.cpp).
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/triton/syntax.h"
#include "codegen/triton/tokens.h"

namespace kerf::triton {

class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, Expressions& expressions);

  const Token& peek(int ahead = 0) const;
  Token next();
  bool is(std::string_view text, int ahead = 0) const;  // a symbol or a name
  bool accept(std::string_view text);
  void expect(std::string_view text);
  bool accept(TokenKind kind);
  std::string expect_name(std::string_view what);
  [[noreturn]] void fail(std::string_view expected) const;  // at the next token

  ExpressionId expression();       // with `a if c else b`
  ExpressionId expression_list();  // `a, b` is a tuple
  const Expression& at(ExpressionId id) const { return expressions_[id]; }

 private:
  ExpressionId make(ExpressionKind kind, int line, std::string_view text,
                    std::vector<ExpressionId> operands = {});
  ExpressionId binary(int level);
  ExpressionId unary();
  ExpressionId postfix();
  ExpressionId atom();
  ExpressionId number();
  ExpressionId call(ExpressionId function);
  ExpressionId subscript(ExpressionId base);
  ExpressionId parenthesised();
  ExpressionId dictionary();
  std::vector<ExpressionId> items_until(std::string_view end);

  std::vector<Token> tokens_;
  size_t position_ = 0;
  Expressions& expressions_;
};

}  // namespace kerf::triton
