#include "sym/text.h"

#include <doctest/doctest.h>

#include "base/error.h"

using namespace kerf;
using namespace kerf::sym;

namespace {

std::string canonical(std::string_view text) {
  Context context;
  return to_text(parse_expr(text, context));
}

}  // namespace

TEST_CASE("sums print with coefficients first and the constant last") {
  CHECK_EQ(canonical("j + i*64"), "64*i + j");
  CHECK_EQ(canonical("3 + p2 + p10"), "p2 + p10 + 3");
  CHECK_EQ(canonical("(p1 % 128) + ((p1 // 128) % 24)*65536 + p0*128"),
           "128*p0 + 65536*((p1 // 128) % 24) + p1 % 128");
  CHECK_EQ(canonical("i - i"), "0");
  CHECK_EQ(canonical("-i + 3"), "-i + 3");
  CHECK_EQ(canonical("3 - (p // 4)"), "-(p // 4) + 3");
  CHECK_EQ(canonical("q - (p % 4)*2"), "-2*(p % 4) + q");
}

TEST_CASE("quotients and products bind alike, left to right") {
  CHECK_EQ(canonical("p // 128 % 24"), "(p // 128) % 24");
  CHECK_EQ(canonical("2*p // 3"), "(2*p) // 3");
  CHECK_EQ(canonical("2*(p // 3)"), "2*(p // 3)");
  CHECK_EQ(canonical("-p // 3"), "(-p) // 3");
  CHECK_EQ(canonical("p // (n + 1)"), "p // (n + 1)");
}

TEST_CASE("minima, maxima and value symbols") {
  CHECK_EQ(canonical("min(n - 64*p0, 64)"), "min(n - 64*p0, 64)");
  CHECK_EQ(canonical("max(a, max(b, a), 3, 4)"), "max(a, b, 4)");
  CHECK_EQ(canonical("4*%12 + %3"), "%3 + 4*%12");
  CHECK_EQ(canonical("%7 % 3"), "%7 % 3");
}

TEST_CASE("the extremes of int64 survive") {
  CHECK_EQ(canonical("-9223372036854775808"), "-9223372036854775808");
  CHECK_EQ(canonical("i - 9223372036854775807"), "i - 9223372036854775807");
  CHECK_EQ(canonical("i + -9223372036854775808"), "i + -9223372036854775808");
  CHECK_EQ(canonical("9223372036854775807*2"), "2*9223372036854775807");
  CHECK_EQ(canonical("9223372036854775807 + 2"), "9223372036854775807 + 2");
}

TEST_CASE("texts that are not expressions are refused") {
  for (const char* text : {"", "p +", "p //", "(p", "p // 0", "p % (1 - 1)", "min(p", "9223372036854775808",
                           "p q", "-9223372036854775809", "1.5", "p ** 2", "%x", "\"p\""}) {
    CAPTURE(text);
    Context context;
    CHECK_THROWS_AS(parse_expr(text, context), ParseError);
  }
}

TEST_CASE("nesting is bounded") {
  Context context;
  std::string deep(100000, '(');
  CHECK_THROWS_AS(parse_expr(deep, context), ParseError);
  CHECK_THROWS_AS(parse_expr(std::string(100000, '-') + "p", context), ParseError);
}

TEST_CASE("a resolver decides about names") {
  Context context;
  base::Lexer lexer("4*row + %2 // 3 rest");
  Resolver resolve = [&](base::Lexer& at, const std::string& name) {
    if (name == "row") return context.symbol("p0", SymbolKind::axis);
    if (name == "%2") return context.value_symbol(2);
    at.fail("unknown name");
  };
  CHECK_EQ(to_text(parse_expr(lexer, context, resolve)), "4*p0 + %2 // 3");
  CHECK(lexer.is("rest"));
  CHECK_THROWS_AS(parse_expr(lexer, context, resolve), ParseError);
}
