#include "sym/simplify.h"

#include "sym/text.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::sym;

namespace {

// Symbols with the extents given as "p0 < 512" in source order; sizes are n, m, s0.. and at least 1.
struct Setting {
  Context context;
  Facts facts;

  Setting() {
    for (const char* name : {"n", "m", "s0", "s1"})
      facts.set_range(context.symbol(name, SymbolKind::size), {1, 4096});
  }
  Setting& extent(const char* axis, std::string_view size) {
    Expr symbol = context.symbol(axis, SymbolKind::axis);
    facts.set_extent(symbol, parse_expr(size, context, SymbolKind::size));
    return *this;
  }
  std::string operator()(std::string_view text) {
    Expr once = simplify(parse_expr(text, context), facts);
    Expr twice = simplify(once, facts);
    CHECK_EQ(to_text(once), to_text(twice));
    return to_text(once);
  }
};

}  // namespace

TEST_CASE("quotients and remainders by range") {
  Setting simple;
  simple.extent("p", "100").extent("i", "n").extent("j", "n").extent("k", "m");
  CHECK_EQ(simple("p // 100"), "0");
  CHECK_EQ(simple("p % 128"), "p");
  CHECK_EQ(simple("(p + 100) // 100"), "1");
  CHECK_EQ(simple("(p + 300) % 100"), "p");
  CHECK_EQ(simple("(p - 100) // 100"), "-1");
  CHECK_EQ(simple("i // n"), "0");
  CHECK_EQ(simple("i % n"), "i");
  CHECK_EQ(simple("(i - n) // n"), "-1");
  CHECK_EQ(simple("(n*k + j) // n"), "k");
  CHECK_EQ(simple("(n*k + j) % n"), "j");
  CHECK_EQ(simple("(n*k + j) // (n*m)"), "0");
  CHECK_EQ(simple("(n*k + j) % (n*m)"), "n*k + j");
  CHECK_EQ(simple("(n*k + j) // (4*n)"), "k // 4");
  CHECK_EQ(simple("(n*k + j) % (4*n)"), "n*(k % 4) + j");
}

TEST_CASE("quotients of sums split into digits") {
  Setting simple;
  simple.extent("p0", "512").extent("p1", "9216").extent("q", "4").extent("r", "16").extent("t", "2");
  CHECK_EQ(simple("(9216*p0 + p1) // 128"), "72*p0 + p1 // 128");
  CHECK_EQ(simple("((9216*p0 + p1) // 128) % 24"), "(p1 // 128) % 24");
  CHECK_EQ(simple("(9216*p0 + p1) % 128"), "p1 % 128");
  CHECK_EQ(simple("(4*p0 + q) // 16"), "p0 // 4");
  CHECK_EQ(simple("(4*p0 + q) % 16"), "4*(p0 % 4) + q");
  CHECK_EQ(simple("(64*p0 + 4*r + q) // 256"), "p0 // 4");
  CHECK_EQ(simple("(64*p0 + 4*r + q) % 256"), "64*(p0 % 4) + q + 4*r");
  CHECK_EQ(simple("(6*p0 + 4*r + t) // 12"), "(3*p0 + 2*r) // 6");
  CHECK_EQ(simple("(2*p0 + q) // 8"), "(2*p0 + q) // 8");
  CHECK_EQ(simple("(128*p0 + p1) // 128"), "p0 + p1 // 128");
}

TEST_CASE("offsets with a known residue") {
  Setting simple;
  Expr p = simple.context.symbol("p", SymbolKind::axis);
  simple.facts.set_modulus(p, {64, 0});
  CHECK_EQ(simple("(p + 3) // 64"), "p // 64");
  CHECK_EQ(simple("(p + 67) % 128"), "(p + 64) % 128 + 3");
  CHECK_EQ(simple("p % 64"), "0");
  CHECK_EQ(simple("(p + 5) % 32"), "5");
  CHECK_EQ(simple("(p + 3) // 4"), "p // 4");
}

TEST_CASE("nested quotients and remainders") {
  Setting simple;
  simple.extent("p", "100000");
  CHECK_EQ(simple("(p // 4) // 6"), "p // 24");
  CHECK_EQ(simple("(p // n) // m"), "p // (m*n)");
  CHECK_EQ(simple("(p % 24) // 4"), "(p // 4) % 6");
  CHECK_EQ(simple("(p % (n*m)) // n"), "(p // n) % m");
  CHECK_EQ(simple("(p % 24) % 6"), "p % 6");
  CHECK_EQ(simple("(p % (n*m)) % n"), "p % n");
  CHECK_EQ(simple("(p // 4) % 6"), "(p // 4) % 6");
  CHECK_EQ(simple("(p % 128 + 1) % 64"), "(p + 1) % 64");
}

TEST_CASE("digits are put together again") {
  Setting simple;
  simple.extent("p", "10000").extent("x", "10000");
  CHECK_EQ(simple("p - 128*(p // 128)"), "p % 128");
  CHECK_EQ(simple("p - p % 128"), "128*(p // 128)");
  CHECK_EQ(simple("128*(p // 128) + p % 128"), "p");
  CHECK_EQ(simple("3*(p % 128) + 384*(p // 128) + x"), "3*p + x");
  CHECK_EQ(simple("3072*(p // 3072) + 128*((p // 128) % 24) + p % 128"), "p");
  CHECK_EQ(simple("128*((p // 128) % 24) + p % 128"), "p % 3072");
  CHECK_EQ(simple("n*(p // n) + p % n"), "p");
  CHECK_EQ(simple("p - n*(p // n)"), "p % n");
  CHECK_EQ(simple("m*n*(p // n) + m*(p % n)"), "m*p");
  CHECK_EQ(simple("(p + 3) - 56*((p + 3) // 56)"), "(p + 3) % 56");
  CHECK_EQ(simple("21504*x + p - 3072*(p // 3072)"), "p % 3072 + 21504*x");
}

TEST_CASE("the FLUX single-stream block") {
  Setting simple;
  simple.extent("p0", "512").extent("p1", "9216");
  CHECK_EQ(simple("p1 // 3072"), "p1 // 3072");
  CHECK_EQ(simple("128*p0 + p1 % 128 + 65536*((p1 // 128) % 24)"),
           "128*p0 + 65536*((p1 // 128) % 24) + p1 % 128");
  CHECK_EQ(simple("21504*p0 + p1"), "21504*p0 + p1");
}

TEST_CASE("worked cases of canonical axes") {
  CHECK_EQ(Setting().extent("p", "3072")("p // 3072"), "0");
  CHECK_EQ(Setting().extent("p", "3072")("(p // 128) % 24"), "p // 128");
  CHECK_EQ(Setting().extent("p", "144")("(p // 24) % 6"), "p // 24");
  CHECK_EQ(Setting().extent("p", "144")("(p // 4) % 6"), "(p // 4) % 6");
  CHECK_EQ(Setting().extent("p", "128")("(p + 64) % 128"), "(p + 64) % 128");
  CHECK_EQ(Setting().extent("p", "56")("(p + 3) % 56"), "(p + 3) % 56");
  CHECK_EQ(Setting().extent("p", "64*s0")("(p // 64) % s0"), "p // 64");
  CHECK_EQ(Setting().extent("p", "64*s0")("p // (64*s0)"), "0");
  CHECK_EQ(Setting().extent("p", "s0*s1")("(p // s1) % s0"), "p // s1");
  CHECK_EQ(Setting().extent("p", "s0*s1")("p % (s0*s1)"), "p");
}

TEST_CASE("reversal") {
  Setting simple;
  simple.extent("p", "1024");
  CHECK_EQ(simple("(1023 - p) // 128"), "-(p // 128) + 7");
  CHECK_EQ(simple("(1023 - p) % 128"), "-(p % 128) + 127");
  CHECK_EQ(simple("(1023 - p) // 1024"), "0");
}

TEST_CASE("two values") {
  Setting setting;
  setting.extent("h", "2").extent("d", "64");
  CHECK_EQ(setting("(h + 1) % 2"), "-h + 1");
  CHECK_EQ(setting("(h + 1) // 2"), "h");
  CHECK_EQ(setting("(64*h + d + 64) % 128"), "d - 64*h + 64");
  CHECK_EQ(setting("(3*h + 1) % 4"), "-h + 1");
}

TEST_CASE("minima and maxima") {
  Setting simple;
  simple.extent("i", "n").extent("p0", "16").extent("j", "4");
  CHECK_EQ(simple("min(i, n)"), "i");
  CHECK_EQ(simple("max(i + 1, n)"), "n");
  CHECK_EQ(simple("min(64, 1024 - 64*p0)"), "64");
  CHECK_EQ(simple("min(64, 1000 - 64*p0)"), "min(-64*p0 + 1000, 64)");
  CHECK_EQ(simple("max(i, i + j)"), "i + j");
  CHECK_EQ(simple("max(p0, 0)"), "p0");
}

TEST_CASE("an axis of extent one is zero") { CHECK_EQ(Setting().extent("p", "1")("64*p + 3"), "3"); }

TEST_CASE("a divisor that is provably zero is left alone") {
  Setting simple;
  simple.facts.set_range(simple.context.symbol("z", SymbolKind::size), {0, 0});
  CHECK_EQ(simple("p // z"), "p // z");
  CHECK_EQ(simple("p % z"), "p % z");
}

TEST_CASE("digits join only over a positive extent") {
  Setting simple;
  simple.facts.set_range(simple.context.symbol("b", SymbolKind::size), {-8, 8});
  CHECK_EQ(simple("128*((p // 128) % b) + p % 128"), "128*((p // 128) % b) + p % 128");
  CHECK_EQ(simple("128*((p // 128) % n) + p % 128"), "p % (128*n)");
}

TEST_CASE("simplify keeps the handle of what is simple, however wide") {
  Setting simple;
  Expr sum = simple.context.constant(0);
  for (int k = 0; k < 60; ++k) {
    Expr symbol = simple.context.symbol(fmt::format("x{}", k), SymbolKind::axis);
    simple.facts.set_extent(symbol, simple.context.constant(7 + k));
    sum = sum + symbol * (k * k + 3);
  }
  CHECK(simplify(sum, simple.facts) == sum);
  CHECK(simplify(sum * sum, simple.facts) == sum * sum);
  Expr wide = mod(floor_div(sum, 12), 36);
  CHECK(simplify(simplify(wide, simple.facts), simple.facts) == simplify(wide, simple.facts));
}
