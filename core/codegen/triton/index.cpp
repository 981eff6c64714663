#include <fmt/ranges.h>

#include "codegen/triton/emission.h"
#include "sym/simplify.h"
#include "sym/text.h"

namespace kerf::codegen::triton {

using sym::Expr;
using sym::Kind;

Expr over_coordinates(const Emission& e, Expr index) {
  return sym::simplify(sym::substitute(index, e.coordinates.to_symbols), e.facts);
}

namespace {

class Printer {
 public:
  explicit Printer(Emission& e) : e_(e) {}

  Tile run(Expr expr) {
    std::string text = sum(expr);
    return {std::move(text), dims_};
  }

 private:
  std::string sum(Expr expr) {
    if (expr.kind() != Kind::add) return product(expr);
    std::string text;
    for (size_t i = 0; i < expr.size(); ++i) {
      std::string term = product(expr.operand(i));
      if (text.empty()) {
        text = term;
      } else {
        text += term.starts_with('-') ? " - " + term.substr(1) : " + " + term;
      }
    }
    return text;
  }

  std::string product(Expr expr) {
    if (expr.kind() != Kind::mul) return atom(expr);
    std::vector<std::string> factors;
    bool negative = false;
    for (size_t i = 0; i < expr.size(); ++i) {
      Expr factor = expr.operand(i);
      if (factor.is_constant(-1)) {
        negative = true;
      } else {
        factors.push_back(atom(factor));
      }
    }
    return (negative ? "-" : "") + fmt::format("{}", fmt::join(factors, " * "));
  }

  std::string atom(Expr expr) {
    switch (expr.kind()) {
      case Kind::constant: return fmt::format("{}", expr.constant());
      case Kind::symbol: return symbol(expr);
      case Kind::floor_div: return quotient(expr, "//");
      case Kind::mod: return quotient(expr, "%");
      case Kind::min:
      case Kind::max:
        return fmt::format("tl.{}imum({}, {})", expr.kind() == Kind::min ? "min" : "max",
                           sum(expr.operand(0)), sum(expr.operand(1)));
      case Kind::mul:
      case Kind::add: return "(" + sum(expr) + ")";
    }
    UNREACHABLE("expression kind {}", static_cast<int>(expr.kind()));
  }

  // Division in Triton rounds towards zero: the same where both sides are not negative.
  std::string quotient(Expr expr, const char* op) {
    auto low = sym::range_of(expr.operand(0), e_.facts).lo, by = sym::range_of(expr.operand(1), e_.facts).lo;
    if (!low || *low < 0 || !by || *by < 1)
      e_.refuse(fmt::format("{} may divide a negative number", sym::to_text(expr)));
    Dims before = dims_;
    dims_ = 0;
    std::string text = fmt::format("({} {} {})", atom(expr.operand(0)), op, atom(expr.operand(1)));
    if (dims_ && e_.dialect == Dialect::ascend)
      e_.refuse(fmt::format("index {} is not affine in the tile's axes", sym::to_text(expr)));
    dims_ |= before;
    return text;
  }

  std::string symbol(Expr expr) {
    const sym::Symbol& symbol = expr.symbol();
    if (symbol.kind == sym::SymbolKind::size) return symbol.name;
    if (symbol.kind == sym::SymbolKind::value) {
      const Tile& value = e_.values[loop::ValueId(symbol.value)];
      if (e_.dialect == Dialect::ascend && value.dims)
        e_.refuse("an address read from memory (gather or scatter)");
      dims_ |= value.dims;
      return value.text;
    }
    for (size_t c = 0; c < e_.coordinates.list.size(); ++c) {
      if (e_.coordinates.symbol(e_.kernel, c) != expr) continue;
      if (e_.dim_of[c]) dims_ |= e_.bit(*e_.dim_of[c]);
      return e_.coordinates.list[c].name;
    }
    for (const Lanes& lanes : e_.lanes) {
      if (lanes.symbol != expr) continue;
      dims_ |= e_.bit(lanes.dim);
      return lanes.name;
    }
    UNREACHABLE("axis {} is no coordinate", symbol.name);
  }

  Emission& e_;
  Dims dims_ = 0;
};

}  // namespace

Tile index_text(Emission& e, Expr place) { return Printer(e).run(place); }

}  // namespace kerf::codegen::triton
