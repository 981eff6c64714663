// Questions about expressions, and rebuilding them with other leaves.
#include "sym/expr.h"

#include <algorithm>

#include "sym/batch.h"
#include "sym/node_map.h"
#include "sym/products.h"

namespace kerf::sym {

std::vector<Term> terms_of(Expr sum) {
  std::vector<Term> terms;
  terms.reserve(term_count(sum));
  for (size_t i = 0; i < term_count(sum); ++i)
    terms.push_back({coefficient_of(term_at(sum, i)), rest_of(term_at(sum, i))});
  return terms;
}

namespace {

bool may_mention(Expr expr, Expr symbol) {
  return (expr.node()->symbol_mask & symbol.node()->symbol_mask) != 0;
}

bool find_mention(Expr expr, Expr symbol, NodeMap<bool>& visited) {
  if (expr == symbol) return true;
  if (!may_mention(expr, symbol) || expr.is_symbol() || visited.find(expr)) return false;
  visited.set(expr, true);
  for (size_t i = 0; i < expr.size(); ++i)
    if (find_mention(expr.operand(i), symbol, visited)) return true;
  return false;
}

void collect(Expr expr, NodeMap<bool>& visited, std::vector<Expr>& out) {
  if (expr.node()->symbol_mask == 0 || visited.find(expr)) return;
  visited.set(expr, true);
  if (expr.is_symbol() && std::find(out.begin(), out.end(), expr) == out.end()) out.push_back(expr);
  for (size_t i = 0; i < expr.size(); ++i) collect(expr.operand(i), visited, out);
}

}  // namespace

bool mentions(Expr expr, Expr symbol) {
  CHECK(symbol.is_symbol(), "mentions() asks about a symbol");
  NodeMap<bool> visited;
  return find_mention(expr, symbol, visited);
}

void collect_symbols(Expr expr, std::vector<Expr>& out) {
  NodeMap<bool> visited;
  collect(expr, visited, out);
}

std::optional<Affine> affine_in(Expr expr, Expr symbol) {
  CHECK(symbol.is_symbol(), "affine_in() asks about a symbol");
  Context& context = expr.context();
  InlineVector<Expr, 16> coefficient, rest;
  for (size_t i = 0; i < term_count(expr); ++i) {
    Expr term = term_at(expr, i);
    if (!mentions(term, symbol)) {
      rest.push_back(term);
      continue;
    }
    std::optional<Expr> factor = divide_product(term, symbol);
    if (!factor || mentions(*factor, symbol)) return std::nullopt;
    coefficient.push_back(*factor);
  }
  return Affine{add(context, coefficient.span()), add(context, rest.span())};
}

namespace {

// Builds expr again bottom-up, with leaf(expr) in the place of each constant and symbol.
template <class Leaf>
class Rebuilder {
 public:
  Rebuilder(Context& target, const Leaf& leaf) : target_(target), leaf_(leaf) {}

  Expr rebuild(Expr expr) {
    if (expr.is_constant() || expr.is_symbol()) return leaf_(expr);
    if (const Expr* known = built_.find(expr)) return *known;
    InlineVector<Expr, 16> operands;
    bool changed = false;
    for (size_t i = 0; i < expr.size(); ++i) {
      operands.push_back(rebuild(expr.operand(i)));
      changed |= !(operands[i] == expr.operand(i));
    }
    Expr result = changed ? build(target_, expr.kind(), operands.span()) : expr;
    built_.set(expr, result);
    return result;
  }

 private:
  Context& target_;
  const Leaf& leaf_;
  NodeMap<Expr> built_;
};

}  // namespace

Expr build(Context& context, Kind kind, std::span<const Expr> operands) {
  switch (kind) {
    case Kind::constant:
    case Kind::symbol: break;
    case Kind::mul: return mul(context, operands);
    case Kind::add: return add(context, operands);
    case Kind::floor_div: return floor_div(operands[0], operands[1]);
    case Kind::mod: return mod(operands[0], operands[1]);
    case Kind::min:
    case Kind::max: {
      Expr result = operands[0];
      for (Expr operand : operands.subspan(1))
        result = kind == Kind::min ? min(result, operand) : max(result, operand);
      return result;
    }
  }
  UNREACHABLE("a leaf is not built from operands");
}

Expr substitute(Expr expr, std::span<const Substitution> map) {
  substitute_all({&expr, 1}, map);
  return expr;
}

void substitute_all(std::span<Expr> exprs, std::span<const Substitution> map) {
  if (exprs.empty()) return;
  uint64_t mask = 0;
  for (const Substitution& entry : map) {
    CHECK(entry.from.is_symbol(), "only symbols can be substituted");
    mask |= entry.from.node()->symbol_mask;
  }
  auto leaf = [&](Expr symbol) {
    for (const Substitution& entry : map)
      if (entry.from == symbol) return entry.to;
    return symbol;
  };
  Rebuilder rebuilder(exprs[0].context(), leaf);
  for (Expr& expr : exprs)
    if (expr.node()->symbol_mask & mask) expr = rebuilder.rebuild(expr);
}

Expr rebuild(Context& target, Expr expr) {
  if (&expr.context() == &target) return expr;
  auto leaf = [&](Expr node) {
    if (node.is_constant()) return target.constant(node.constant());
    const Symbol& symbol = node.symbol();
    if (symbol.kind == SymbolKind::value) return target.value_symbol(symbol.value);
    return target.symbol(symbol.name, symbol.kind);
  };
  return Rebuilder(target, leaf).rebuild(expr);
}

}  // namespace kerf::sym
