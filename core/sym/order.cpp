// The structural order. Equal subexpressions are one node, so a comparison follows one path down.
#include <cctype>

#include "sym/expr.h"
#include "sym/products.h"

namespace kerf::sym {

namespace {

using Order = std::strong_ordering;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The digits from `at` on without leading zeros.
std::string_view number_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  while (at + 1 < end && text[at] == '0') ++at;
  return text.substr(at, end - at);
}

size_t skip_digits(std::string_view text, size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

// Runs of digits compare as numbers: p2 < p10. Names that differ in leading zeros only compare as text.
Order compare_names(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      std::string_view x = number_at(a, i), y = number_at(b, j);
      if (auto order = x.size() <=> y.size(); order != 0) return order;
      if (auto order = x <=> y; order != 0) return order;
      i = skip_digits(a, i);
      j = skip_digits(b, j);
    } else {
      if (auto order = a[i] <=> b[j]; order != 0) return order;
      ++i, ++j;
    }
  }
  if (auto order = (a.size() - i) <=> (b.size() - j); order != 0) return order;
  return a <=> b;
}

Order compare_symbols(const Symbol& a, const Symbol& b) {
  if (&a == &b) return Order::equal;
  if (auto order = a.kind <=> b.kind; order != 0) return order;
  return compare_names(a.name, b.name);
}

Order compare_lead(Expr a, Expr b) {
  const Symbol* x = a.node()->lead;
  const Symbol* y = b.node()->lead;
  if (x == y) return Order::equal;
  if (!x || !y) return x ? Order::less : Order::greater;
  return compare_symbols(*x, *y);
}

Order compare_lists(std::span<const Expr> a, std::span<const Expr> b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (auto order = compare(a[i], b[i]); order != 0) return order;
  return a.size() <=> b.size();
}

Order compare_operands(Expr a, Expr b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (auto order = compare(a.operand(i), b.operand(i)); order != 0) return order;
  return a.size() <=> b.size();
}

// Neither is a constant or a canonical product.
Order compare_factors(Expr a, Expr b) {
  if (auto order = a.kind() <=> b.kind(); order != 0) return order;
  switch (a.kind()) {
    case Kind::symbol: return compare_symbols(a.symbol(), b.symbol());
    case Kind::floor_div:
    case Kind::mod:
      // Reversed, so that strides read from large to small: (p // 128) % 24 before p % 128.
      return compare_operands(b, a);
    case Kind::constant:
    case Kind::mul:
    case Kind::add:
    case Kind::min:
    case Kind::max: return compare_operands(a, b);
  }
  UNREACHABLE("kind of an expression");
}

bool is_factor(Expr expr) { return expr.kind() != Kind::mul || expr.node()->as_written; }

}  // namespace

// Lexicographic over the factors, then the coefficient, so that a sum's terms order as their rests do.
std::strong_ordering compare(Expr a, Expr b) {
  if (a == b) return Order::equal;
  if (a.is_constant() && b.is_constant()) return a.constant() <=> b.constant();
  if (a.is_constant() || b.is_constant()) return a.is_constant() ? Order::greater : Order::less;
  if (auto order = compare_lead(a, b); order != 0) return order;
  if (is_factor(a) && is_factor(b)) return compare_factors(a, b);
  Factors of_a, of_b;
  factors_of(a, of_a);
  factors_of(b, of_b);
  if (auto order = compare_lists(of_a.span(), of_b.span()); order != 0) return order;
  return coefficient_of(a) <=> coefficient_of(b);
}

}  // namespace kerf::sym
