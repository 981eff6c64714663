#pragma once
// Text form: `64*i + j`, `(p // 128) % 24`, `min(64, n - 64*p0)`, `%3` for a value symbol.
// Precedence: * // % bind alike, left to right, then + and -. Printing is canonical and parses back to the
// same handle. `p % 3` needs its space: `%3` is one token.
#include <functional>
#include <string>

#include "base/lexer.h"
#include "sym/expr.h"

namespace kerf::sym {

std::string to_text(Expr expr);

// How a name becomes an expression; throws ParseError (through lexer.fail) for names it does not know. A
// value token arrives with its percent sign: "%3". The token itself is already read.
using Resolver = std::function<Expr(base::Lexer& lexer, const std::string& name)>;
Expr parse_expr(base::Lexer& lexer, Context& context, const Resolver& resolve);

// A whole text, with every new name a symbol of the given kind and %3 the value symbol 3.
Expr parse_expr(std::string_view text, Context& context, SymbolKind kind = SymbolKind::axis);

}  // namespace kerf::sym
