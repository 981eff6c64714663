#include "sym/facts.h"

#include "sym/eval.h"
#include "sym/text.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::sym;

namespace {

struct Setting {
  Context context;
  Facts facts;
  Expr n = context.symbol("n", SymbolKind::size), m = context.symbol("m", SymbolKind::size);
  Expr i = context.symbol("i", SymbolKind::axis), j = context.symbol("j", SymbolKind::axis);
  Expr p = context.symbol("p", SymbolKind::axis);

  Setting() {
    facts.set_range(n, {1, 4096});
    facts.set_range(m, {1, std::nullopt});
    facts.set_modulus(n, {8, 0});
    facts.set_extent(i, m);
    facts.set_extent(j, n);
    facts.set_extent(p, context.constant(100));
  }
  Expr operator()(std::string_view text) { return parse_expr(text, context); }
  Range range(std::string_view text) { return range_of((*this)(text), facts); }
  Modulus modulus(std::string_view text) { return modulus_of((*this)(text), facts); }
};

}  // namespace

TEST_CASE("ranges") {
  Setting s;
  CHECK(s.range("p") == Range{0, 99});
  CHECK(s.range("j") == Range{0, 4095});
  CHECK(s.range("i") == Range{0, std::nullopt});
  CHECK(s.range("3*p - 7") == Range{-7, 290});
  CHECK(s.range("-2*p") == Range{-198, 0});
  CHECK(s.range("(p + 28) % 128") == Range{28, 127});
  CHECK(s.range("(p + 29) % 128") == Range{0, 127});
  CHECK(s.range("p // m") == Range{0, 99});
  CHECK(s.range("i // 4") == Range{0, std::nullopt});
  CHECK(s.range("min(i, 7)") == Range{0, 7});
  CHECK(s.range("max(i, 7)") == Range{7, std::nullopt});
  CHECK(s.range("u % p") == Range{0, 98});
  CHECK(s.range("u") == Range{});
  CHECK(s.range("9223372036854775807*p") == Range{0, std::nullopt});
}

TEST_CASE("residues") {
  Setting s;
  CHECK(s.modulus("n") == Modulus{8, 0});
  CHECK(s.modulus("3*n + 5") == Modulus{24, 5});
  CHECK(s.modulus("n*m") == Modulus{8, 0});
  CHECK(s.modulus("(n + 4) // 4") == Modulus{2, 1});
  CHECK(s.modulus("(n + 3) % 4") == Modulus{0, 3});
  CHECK(s.modulus("n % 12") == Modulus{4, 0});
  CHECK(s.modulus("max(n, 4)") == Modulus{4, 0});
  CHECK(s.modulus("p") == Modulus{1, 0});
  CHECK(s.modulus("7") == Modulus{0, 7});
}

TEST_CASE("proofs with symbolic extents") {
  Setting s;
  CHECK(provably_less(s.j, s.n, s.facts));
  CHECK_FALSE(provably_less(s.n, s.j, s.facts));
  CHECK(provably_less(s("n*i + j"), s("n*m"), s.facts));
  CHECK_FALSE(provably_less(s("n*i + j + 1"), s("n*m"), s.facts));
  CHECK(provably_less_equal(s("n*i + j + 1"), s("n*m"), s.facts));
  CHECK(provably_less(s("u % n"), s.n, s.facts));
  CHECK(provably_less_equal(s("min(u, n)"), s.n, s.facts));
  CHECK(provably_less_equal(s("u"), s("max(u, n)"), s.facts));
  CHECK_FALSE(provably_less_equal(s("max(u, n)"), s("n"), s.facts));
  CHECK(provably_less_equal(s("n - n % 64"), s.n, s.facts));
  CHECK(provably_equal(s("8*(n // 8)"), s.n, s.facts));
  CHECK_FALSE(provably_equal(s("16*(n // 16)"), s.n, s.facts));
}

TEST_CASE("proofs with an extent that is a minimum") {
  Setting s;
  Expr k = s.context.symbol("k", SymbolKind::axis);
  s.facts.set_extent(k, s("min(n - 1, 3)"));
  CHECK(provably_less(s("k + 1"), s.n, s.facts));
  CHECK(provably_less(s("k"), s("3"), s.facts));
  CHECK_FALSE(provably_less(s("k + 2"), s.n, s.facts));
}

TEST_CASE("divisibility") {
  Setting s;
  CHECK(provably_divides(s("m"), s("64*m"), s.facts));
  CHECK(provably_divides(s("8*m"), s("n*m"), s.facts));
  CHECK_FALSE(provably_divides(s("16*m"), s("n*m"), s.facts));
  CHECK(provably_divides(s("n + 1"), s("n*i + i"), s.facts));
  CHECK(provably_divides(s("0"), s("0"), s.facts));
  CHECK_FALSE(provably_divides(s("0"), s("n"), s.facts));
  CHECK(*exact_div(s("64*m"), s.m, s.facts) == s("64"));
  CHECK(*exact_div(s("n*m"), s("8*m"), s.facts) == floor_div(s.n, 8));
  CHECK_FALSE(exact_div(s("p"), s("3"), s.facts).has_value());
}

TEST_CASE("an empty range claims anything but breaks nothing") {
  Setting s;
  s.facts.set_range(s.p, {5, 3});
  CHECK_NOTHROW(range_of(s("p // 4 * 2 + p % 3"), s.facts));
  CHECK_NOTHROW(provably_less(s("p // 4"), s("p % 3"), s.facts));
}

TEST_CASE("an extent does not mention its own symbol") {
  Setting s;
  CHECK_THROWS_AS(s.facts.set_extent(s.p, s.p + 1), InternalError);
}
