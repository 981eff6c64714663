// Builders of sums and products.
#include <algorithm>

#include "sym/integers.h"
#include "sym/products.h"

namespace kerf::sym {

namespace {

struct Part {
  Wide coefficient = 0;
  Expr rest;
};
using Parts = InlineVector<Part, 16>;

// A total may need more than one int64; then it is written as several terms over the same rest. That is a
// function of the total alone, so the form stays canonical.
void append_total(Wide total, Expr rest, InlineVector<Expr, 16>& out) {
  while (!fits(total)) {
    int64_t chunk = total > 0 ? kMaxInt : kMinInt;
    out.push_back(make_term(chunk, rest));
    total -= chunk;
  }
  if (total != 0) out.push_back(make_term(static_cast<int64_t>(total), rest));
}

void append_parts(Expr term, Parts& parts, Wide& constant) {
  if (term.is_constant()) {
    constant += term.constant();
  } else if (term.kind() == Kind::add) {
    for (size_t i = 0; i < term.size(); ++i) append_parts(term.operand(i), parts, constant);
  } else {
    parts.push_back({coefficient_of(term), rest_of(term)});
  }
}

// Sorts by rest and joins neighbours with the same one.
void join_like_terms(Parts& parts) {
  auto less = [](const Part& a, const Part& b) { return compare(a.rest, b.rest) < 0; };
  if (!std::is_sorted(parts.begin(), parts.end(), less)) std::sort(parts.begin(), parts.end(), less);
  size_t kept = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (kept > 0 && parts[kept - 1].rest == parts[i].rest) {
      parts[kept - 1].coefficient += parts[i].coefficient;
    } else {
      parts[kept++] = parts[i];
    }
  }
  parts.truncate(kept);
}

void merge_factors(Expr a, Expr b, Factors& out) {
  Factors left, right;
  factors_of(a, left);
  factors_of(b, right);
  size_t i = 0, j = 0;
  while (i < left.size() || j < right.size()) {
    bool from_left = j == right.size() || (i < left.size() && compare(left[i], right[j]) <= 0);
    out.push_back(from_left ? left[i++] : right[j++]);
  }
}

// The product of two terms that are not sums; nullopt when the coefficient overflows.
std::optional<Expr> mul_terms(Expr a, Expr b) {
  std::optional<int64_t> coefficient = checked_mul(coefficient_of(a), coefficient_of(b));
  if (!coefficient) return std::nullopt;
  Factors factors;
  merge_factors(a, b, factors);
  return make_product(a.context(), *coefficient, factors.span());
}

// Multiplies out; nullopt when that would be too many terms or a coefficient overflows.
std::optional<Expr> expand(Expr a, Expr b) {
  size_t rows = term_count(a), columns = term_count(b);
  if (rows > 1 && columns > 1 && rows * columns > kMaxExpandedTerms) return std::nullopt;
  InlineVector<Expr, 16> terms;
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      std::optional<Expr> term = mul_terms(term_at(a, i), term_at(b, j));
      if (!term) return std::nullopt;
      terms.push_back(*term);
    }
  }
  return terms.size() == 1 ? terms[0] : add(a.context(), terms.span());
}

}  // namespace

Expr add(Context& context, std::span<const Expr> terms) {
  Parts parts;
  Wide constant = 0;
  for (Expr term : terms) append_parts(term, parts, constant);
  join_like_terms(parts);
  InlineVector<Expr, 16> operands;
  for (const Part& part : parts) append_total(part.coefficient, part.rest, operands);
  append_total(constant, context.constant(1), operands);
  if (operands.empty()) return context.constant(0);
  if (operands.size() == 1) return operands[0];
  return context.intern(Kind::add, operands.span());
}

Expr add(Expr a, Expr b) {
  if (a.is_constant(0)) return b;
  if (b.is_constant(0)) return a;
  Expr terms[] = {a, b};
  return add(a.context(), terms);
}

Expr mul(Expr a, Expr b) {
  CHECK(&a.context() == &b.context(), "factors of two contexts");
  if (a.is_constant(0) || b.is_constant(1)) return a;
  if (b.is_constant(0) || a.is_constant(1)) return b;
  if (std::optional<Expr> product = expand(a, b)) return *product;
  Expr operands[] = {a, b};
  if (compare(b, a) < 0) std::swap(operands[0], operands[1]);
  return a.context().intern(Kind::mul, operands);
}

Expr mul(Context& context, std::span<const Expr> factors) {
  Expr result = context.constant(1);
  for (Expr factor : factors) result = mul(result, factor);
  return result;
}

Expr product(Context& context, std::span<const Expr> factors) { return mul(context, factors); }
Expr neg(Expr a) { return mul(a.context().constant(-1), a); }
Expr sub(Expr a, Expr b) { return add(a, neg(b)); }

Expr operator+(Expr a, int64_t b) { return add(a, a.context().constant(b)); }
Expr operator-(Expr a, int64_t b) { return sub(a, a.context().constant(b)); }
Expr operator*(Expr a, int64_t b) { return mul(a, a.context().constant(b)); }

}  // namespace kerf::sym
