#include "sym/text.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

#include "sym/integers.h"
#include "sym/products.h"

namespace kerf::sym {

namespace {

// ---- printing ----

class Printer {
 public:
  std::string take() { return std::move(out_); }

  void expression(Expr expr) {
    for (size_t i = 0; i < term_count(expr); ++i) {
      Expr operand = term_at(expr, i);
      bool negative = is_negative(operand);
      if (i == 0) {
        out_ += negative ? "-" : "";
      } else {
        out_ += negative ? " - " : " + ";
      }
      term(operand, negative, i == 0 && negative);
    }
  }

 private:
  // The minimum has no positive counterpart: it prints with its own sign.
  static bool is_negative(Expr term) { return coefficient_of(term) < 0 && coefficient_of(term) != kMinInt; }

  // A sign before the first term binds tighter than // does: -(p // 4).
  void term(Expr expr, bool without_sign, bool after_sign) {
    int64_t coefficient = without_sign ? -coefficient_of(expr) : coefficient_of(expr);
    if (expr.is_constant()) {
      number(coefficient);
      return;
    }
    Factors factors;
    if (expr.node()->as_written) {
      factors.push_back(expr.operand(0));
      factors.push_back(expr.operand(1));
    } else {
      factors_of(expr, factors);
    }
    if (coefficient != 1) {
      number(coefficient);
      out_ += '*';
    }
    // A quotient alone needs no parentheses: it binds as a product does.
    if (coefficient == 1 && factors.size() == 1 && !after_sign && !expr.node()->as_written) {
      factor(factors[0]);
      return;
    }
    for (size_t i = 0; i < factors.size(); ++i) {
      if (i > 0) out_ += '*';
      enclosed(factors[i]);
    }
  }

  void factor(Expr expr) {
    switch (expr.kind()) {
      case Kind::constant:
      case Kind::symbol:
      case Kind::mul:
      case Kind::add: enclosed(expr); return;
      case Kind::floor_div: binary(expr, " // "); return;
      case Kind::mod: binary(expr, " % "); return;
      case Kind::min: call("min", expr); return;
      case Kind::max: call("max", expr); return;
    }
    UNREACHABLE("kind of an expression");
  }

  // As an operand that must bind tighter than any operator.
  void enclosed(Expr expr) {
    if (expr.is_symbol()) {
      out_ += expr.symbol().name;
    } else if (expr.is_constant() && expr.constant() >= 0) {
      number(expr.constant());
    } else if (expr.kind() == Kind::min || expr.kind() == Kind::max) {
      factor(expr);
    } else {
      out_ += '(';
      expression(expr);
      out_ += ')';
    }
  }

  void binary(Expr expr, const char* sign) {
    enclosed(expr.operand(0));
    out_ += sign;
    enclosed(expr.operand(1));
  }

  void call(const char* name, Expr expr) {
    out_ += name;
    for (size_t i = 0; i < expr.size(); ++i) {
      out_ += i == 0 ? "(" : ", ";
      expression(expr.operand(i));
    }
    out_ += ')';
  }

  void number(int64_t value) { fmt::format_to(std::back_inserter(out_), "{}", value); }

  std::string out_;
};

// ---- parsing ----

constexpr int kMaxNesting = 1000;  // parentheses and signs; keeps hostile texts off the stack's end

class Parser {
 public:
  Parser(base::Lexer& lexer, Context& context, const Resolver& resolve)
      : lexer_(lexer), context_(context), resolve_(resolve) {}

  Expr sum() {
    Expr result = product();
    while (lexer_.is("+") || lexer_.is("-")) {
      bool negative = lexer_.next().text == "-";
      Expr term = product();
      result = negative ? sub(result, term) : add(result, term);
    }
    return result;
  }

 private:
  Expr product() {
    Expr result = factor();
    while (lexer_.is("*") || lexer_.is("//") || lexer_.is("%")) {
      std::string sign = lexer_.next().text;
      if (sign == "*") {
        result = mul(result, factor());
        continue;
      }
      base::Token at = lexer_.peek();
      Expr divisor = factor();
      if (divisor.is_constant(0)) throw ParseError("division by zero", at.line, at.column);
      result = sign == "//" ? floor_div(result, divisor) : mod(result, divisor);
    }
    return result;
  }

  Expr factor() {
    if (++nesting_ > kMaxNesting) lexer_.fail("expression nested too deeply");
    Expr result = nested_factor();
    --nesting_;
    return result;
  }

  Expr nested_factor() {
    using base::TokenKind;
    if (lexer_.accept("-")) return lexer_.peek().kind == TokenKind::integer ? integer(true) : neg(factor());
    if (lexer_.accept("(")) {
      Expr inner = sum();
      lexer_.expect(")");
      return inner;
    }
    switch (lexer_.peek().kind) {
      case TokenKind::integer: return integer(false);
      case TokenKind::value: return resolve_(lexer_, fmt::format("%{}", lexer_.next().text));
      case TokenKind::identifier: return name();
      case TokenKind::floating:
      case TokenKind::string:
      case TokenKind::symbol:
      case TokenKind::end: break;
    }
    lexer_.fail("expected an index expression");
  }

  // The lexer hands 2^63 and more over as the bits of a negative number.
  Expr integer(bool negative) {
    int64_t value = lexer_.peek().integer;
    if (value < 0 && !(negative && value == kMinInt)) lexer_.fail("integer out of range");
    lexer_.next();
    if (negative && value != kMinInt) value = -value;
    return context_.constant(value);
  }

  Expr name() {
    std::string name = lexer_.next().text;
    if (!lexer_.is("(") || (name != "min" && name != "max")) return resolve_(lexer_, name);
    lexer_.expect("(");
    Expr result = sum();
    while (lexer_.accept(",")) result = name == "min" ? min(result, sum()) : max(result, sum());
    lexer_.expect(")");
    return result;
  }

  base::Lexer& lexer_;
  Context& context_;
  const Resolver& resolve_;
  int nesting_ = 0;
};

std::optional<uint32_t> value_id_of(std::string_view name) {
  uint32_t id = 0;
  const char* end = name.data() + name.size();
  auto [stop, error] = std::from_chars(name.data() + 1, end, id);
  if (error != std::errc() || stop != end) return std::nullopt;
  return id;
}

}  // namespace

std::string to_text(Expr expr) {
  CHECK(expr.valid(), "printing no expression");
  Printer printer;
  printer.expression(expr);
  return printer.take();
}

Expr parse_expr(base::Lexer& lexer, Context& context, const Resolver& resolve) {
  return Parser(lexer, context, resolve).sum();
}

Expr parse_expr(std::string_view text, Context& context, SymbolKind kind) {
  base::Lexer lexer(text);
  Resolver resolve = [&](base::Lexer& at, const std::string& name) {
    if (std::optional<Expr> known = context.find_symbol(name)) return *known;
    if (name[0] != '%') return context.symbol(name, kind);
    std::optional<uint32_t> id = value_id_of(name);
    if (!id) at.fail("expected a value number after '%'");
    return context.value_symbol(*id);
  };
  Expr result = parse_expr(lexer, context, resolve);
  if (!lexer.at_end()) lexer.fail("expected the end of the expression");
  return result;
}

}  // namespace kerf::sym
