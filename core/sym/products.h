#pragma once
// Products as coefficient and sorted factors, for the builders and rules inside sym.
//
// A canonical product is [constant,] factor, factor, ...: the constant, when not 1, comes first; a factor is
// never a constant, a sum or another canonical product; a power repeats its factor. A product that cannot be
// written so, because its coefficient would overflow or its sums are too many to multiply out, is a node of
// exactly two operands with `as_written` set. Everything else treats that node as one factor.
#include <cstdint>
#include <optional>
#include <span>

#include "sym/expr.h"
#include "sym/inline_vector.h"

namespace kerf::sym {

using Factors = InlineVector<Expr, 8>;

// 64*i*j -> 64 and {i, j}; 7 -> 7 and {}; a sum is its own only factor.
int64_t coefficient_of(Expr expr);
void factors_of(Expr expr, Factors& out);
// expr without its coefficient.
Expr rest_of(Expr expr);

// A sum's terms; any other expression is its own only term.
inline size_t term_count(Expr expr) { return expr.kind() == Kind::add ? expr.size() : 1; }
inline Expr term_at(Expr expr, size_t i) { return expr.kind() == Kind::add ? expr.operand(i) : expr; }

// coefficient * the product of sorted factors.
Expr make_product(Context& context, int64_t coefficient, std::span<const Expr> factors);
// coefficient * rest, where rest has coefficient 1 and is not a sum.
Expr make_term(int64_t coefficient, Expr rest);

// term / divisor when the coefficient divides and every factor of the divisor is one of the term's:
// 64*n*i / (16*n) is 4*i. Neither is a sum.
std::optional<Expr> divide_product(Expr term, Expr divisor);
// The largest product with a positive coefficient that divides both.
Expr gcd_product(Expr a, Expr b);
// term without one occurrence of a factor, for a factor that occurs.
Expr without_factor(Expr term, Expr factor);

// The builder of a kind, for canonical operands.
Expr build(Context& context, Kind kind, std::span<const Expr> operands);

// Whether these operands of a product are the two of an as_written node.
bool stays_as_written(std::span<const Expr> operands);

}  // namespace kerf::sym
