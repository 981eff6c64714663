#include "sym/eval.h"

#include <vector>

#include "sym/text.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::sym;

TEST_CASE("division rounds down and the remainder has the divisor's sign") {
  CHECK_EQ(floor_div_int(-7, 2), -4);
  CHECK_EQ(floor_div_int(7, -2), -4);
  CHECK_EQ(floor_div_int(-7, -2), 3);
  CHECK_EQ(mod_int(-7, 2), 1);
  CHECK_EQ(mod_int(7, -2), -1);
  CHECK_EQ(mod_int(INT64_MIN, -1), 0);
  CHECK_EQ(mod_int(INT64_MIN, INT64_MAX), INT64_MAX - 1);
}

TEST_CASE("evaluate refuses overflow and division by zero") {
  Context context;
  auto at = [&](std::string_view text, int64_t value) {
    return evaluate(parse_expr(text, context), [&](const Symbol&) { return value; });
  };
  CHECK_EQ(at("3*p + 1", 5), 16);
  CHECK_EQ(at("p*p", INT64_MAX), std::nullopt);
  CHECK_EQ(at("p + 1", INT64_MAX), std::nullopt);
  CHECK_EQ(at("5 // p", 0), std::nullopt);
  CHECK_EQ(at("5 % p", 0), std::nullopt);
  CHECK_EQ(at("p // q", -1), 1);
  CHECK_EQ(at("min(p, 3, q) + max(p, 9)", 4), 12);
}

TEST_CASE("a program shares work and reports bad values") {
  Context context;
  Expr n = context.symbol("n", SymbolKind::size), m = context.symbol("m", SymbolKind::size);
  Expr inputs[] = {n, m};
  Expr tiles = ceil_div(n, context.constant(64));
  Expr outputs[] = {tiles, tiles * m, context.constant(7), m, floor_div(n, m)};
  EvalProgram program(inputs, outputs);
  CHECK_EQ(program.input_count(), 2u);
  CHECK_EQ(program.output_count(), 5u);
  std::vector<int64_t> registers(program.register_count()), results(5);
  program.run(std::vector<int64_t>{100, 3}, results, registers);
  CHECK_EQ(results, std::vector<int64_t>{2, 6, 7, 3, 33});
  CHECK_THROWS_AS(program.run(std::vector<int64_t>{100, 0}, results, registers), InternalError);
  CHECK_THROWS_AS(program.run(std::vector<int64_t>{INT64_MAX, 1}, results, registers), InternalError);
  CHECK_THROWS_AS(program.run(std::vector<int64_t>{1}, results, registers), InternalError);
  CHECK_THROWS_AS(EvalProgram(std::span<const Expr>(inputs, 1), outputs), InternalError);

  EvalProgram nothing;
  nothing.run({}, {}, {});
}
