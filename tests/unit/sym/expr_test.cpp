#include "sym/expr.h"

#include <vector>

#include "sym/eval.h"
#include "sym/text.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::sym;

TEST_CASE("equal expressions are one handle") {
  Context context;
  Expr i = context.symbol("i", SymbolKind::axis), j = context.symbol("j", SymbolKind::axis);
  CHECK(i * 64 + j == j + (i * 32) * 2);
  CHECK((i + j) * (i - j) == i * i - j * j);
  CHECK(i - i == context.constant(0));
  CHECK_FALSE(i + j == i - j);
  CHECK(context.symbol("i", SymbolKind::axis) == i);
  Expr value = context.value_symbol(12);
  CHECK(value == *context.find_symbol("%12"));
  CHECK_EQ(value.symbol().value, 12u);
  CHECK_FALSE(context.find_symbol("k").has_value());
  CHECK_THROWS_AS(context.symbol("i", SymbolKind::size), InternalError);
}

TEST_CASE("contexts do not mix") {
  Context one, two;
  Expr i = one.symbol("i", SymbolKind::axis), j = two.symbol("j", SymbolKind::axis);
  CHECK_THROWS_AS(add(i, j), InternalError);
  CHECK_THROWS_AS(mul(i, j), InternalError);
  CHECK_THROWS_AS(floor_div(i, j), InternalError);
}

TEST_CASE("symbols order by kind, then by name with numbers as numbers") {
  Context context;
  std::vector<Expr> ordered = {context.symbol("z", SymbolKind::size),
                               context.symbol("a", SymbolKind::axis),
                               context.symbol("p2", SymbolKind::axis),
                               context.symbol("p10", SymbolKind::axis),
                               context.symbol("p10a", SymbolKind::axis),
                               context.value_symbol(2),
                               context.value_symbol(10),
                               context.constant(-5),
                               context.constant(3)};
  for (size_t a = 0; a < ordered.size(); ++a)
    for (size_t b = 0; b < ordered.size(); ++b) CHECK((compare(ordered[a], ordered[b]) <=> 0) == (a <=> b));
  Expr zeros = context.symbol("p010", SymbolKind::axis);
  CHECK(compare(zeros, ordered[3]) != 0);
}

TEST_CASE("builders fold what always holds") {
  Context context;
  auto text = [&](std::string_view source) { return to_text(parse_expr(source, context)); };
  CHECK_EQ(text("(130*p + q + 300) // 128"), "p + (2*p + q + 44) // 128 + 2");
  CHECK_EQ(text("(130*p + q + 300) % 128"), "(2*p + q + 44) % 128");
  CHECK_EQ(text("(4*p + 6) // 16"), "(p + 1) // 4");
  CHECK_EQ(text("(4*p + 6) % 16"), "4*((p + 1) % 4) + 2");
  CHECK_EQ(text("(n*i + j) // n"), "i + j // n");
  CHECK_EQ(text("(n*i + j) % n"), "j % n");
  CHECK_EQ(text("(n*i + i) // (n + 1)"), "i");
  CHECK_EQ(text("(n*i) % (4*n)"), "(i % 4)*n");
  CHECK_EQ(text("(p // 4) // 6"), "p // 24");
  CHECK_EQ(text("(5*(p % 12) + q) % 6"), "(5*p + q) % 6");
  CHECK_EQ(text("p // -8"), "(-p) // 8");
  CHECK_EQ(text("p % -8"), "-((-p) % 8)");
  CHECK_EQ(text("-7 // 2"), "-4");
  CHECK_EQ(text("-7 % 2"), "1");
  CHECK_EQ(text("7 % -2"), "-1");
  CHECK_EQ(to_text(ceil_div(parse_expr("64*i + 1", context), context.constant(64))), "i + 1");
}

TEST_CASE("the most negative divisor keeps its sign") {
  // Cancelling 2 with the offset 1 would turn -1 // 2^62-like quotients around.
  Context context;
  Expr p = context.symbol("p", SymbolKind::axis);
  Expr least = context.constant(INT64_MIN);
  for (int64_t value : {-3, 0, 1, 7}) {
    auto lookup = [&](const Symbol&) { return value; };
    CHECK_EQ(evaluate(floor_div(p * 2 + 1, least), lookup), floor_div_int(2 * value + 1, INT64_MIN));
    CHECK_EQ(evaluate(mod(p * 2 + 1, least), lookup), mod_int(2 * value + 1, INT64_MIN));
  }
}

TEST_CASE("folds that would overflow are not done") {
  Context context;
  Expr i = context.symbol("i", SymbolKind::axis), most = context.constant(INT64_MAX);
  CHECK_FALSE((most + 1).is_constant());
  CHECK((most + 1) - 1 == most);
  CHECK_FALSE((most * 2).is_constant());
  CHECK((i * INT64_MAX + i * INT64_MAX) - i * INT64_MAX == i * INT64_MAX);
  CHECK((i * INT64_MAX) * 2 == context.constant(2) * (i * INT64_MAX));
  CHECK_FALSE(floor_div(context.constant(INT64_MIN), -1).is_constant());
}

TEST_CASE("products of wide sums stay products") {
  Context context;
  Expr sum = context.constant(0);
  for (int k = 0; k < 60; ++k) sum = sum + context.symbol(fmt::format("x{}", k), SymbolKind::axis);
  Expr square = sum * sum;
  CHECK_EQ(square.kind(), Kind::mul);
  CHECK_EQ(square.size(), 2u);
  CHECK(square - square == context.constant(0));
  CHECK(parse_expr(to_text(square * 3 + 1), context) == square * 3 + 1);
  CHECK_EQ((sum * 5).size(), 60u);
}

TEST_CASE("terms, affine form, mentions and symbols") {
  Context context;
  Expr e = parse_expr("64*n*i + 3*j + (k % 4) + 7", context);
  Expr i = *context.find_symbol("i"), k = *context.find_symbol("k"), n = *context.find_symbol("n");
  auto terms = terms_of(e);
  REQUIRE_EQ(terms.size(), 4u);
  CHECK_EQ(terms.back().coefficient, 7);
  CHECK(terms.back().rest == context.constant(1));
  Expr sum = context.constant(0);
  for (const Term& term : terms) sum = sum + term.rest * term.coefficient;
  CHECK(sum == e);

  auto affine = affine_in(e, i);
  REQUIRE(affine.has_value());
  CHECK(affine->coefficient == n * 64);
  CHECK(affine->coefficient * i + affine->rest == e);
  CHECK_FALSE(affine_in(e, k).has_value());
  CHECK_FALSE(affine_in(i * i, i).has_value());
  CHECK(affine_in(n, i)->coefficient == context.constant(0));
  CHECK(mentions(e, k));
  CHECK_FALSE(mentions(e, context.symbol("other", SymbolKind::axis)));
  std::vector<Expr> symbols;
  collect_symbols(e, symbols);
  collect_symbols(e * 2, symbols);
  CHECK_EQ(symbols.size(), 4u);
}

TEST_CASE("substitution is simultaneous and canonical") {
  Context context;
  Expr i = context.symbol("i", SymbolKind::axis), j = context.symbol("j", SymbolKind::axis);
  Substitution swap[] = {{i, j}, {j, i}};
  CHECK(substitute(i * 4 + j, swap) == j * 4 + i);
  Substitution cut[] = {{i, j * 128 + 5}};
  CHECK_EQ(to_text(substitute(parse_expr("(i // 128) % 24 + i % 128", context), cut)), "j % 24 + 5");
  CHECK(substitute(j, cut) == j);
  CHECK(product(context, {}) == context.constant(1));
}
