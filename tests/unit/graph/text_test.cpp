// Printing and parsing: texts come back as they were, and what is not in the grammar is refused with its place.
#include "graph/parse.h"
#include "graph/print.h"
#include "graph/verify.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::graph;

namespace {

void comes_back(std::string_view text) {
  sym::Context context;
  Graph graph = parse(text, context);
  CHECK(verify(graph) == std::vector<std::string>{});
  CHECK(to_text(graph, Sources::shown) == text);
}

std::string parse_error(std::string_view text) {
  sym::Context context;
  try {
    parse(text, context);
  } catch (const ParseError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a graph of many kinds of nodes comes back") {
  comes_back(R"(graph given s0 in [2, 64], s0 mod 2 = 0, s1 >= 1
  size s0 = input 0 dim 0
  size s1 = input 3
  %0 = input 0: f32[s0, 768]
  %1 = input 1: f32[768, 4] strides [1, 768]
  %2 = constant f32 0.5
  %3 = mul %0, %2: f32[s0, 768] @ "model.py:3 in forward: x = 0.5 * \"x\""
  %4 = reduce sum %3 dims [1]: f32[s0]
  %5 = mm %3, %1: f32[s0, 4]
  %6 = reshape %5: f32[4*s0]
  %7 = slice %6 dim 0 start s0 step 2: f32[s0]
  %8 = iota start 0 step 1: i64[s0]
  %9 = cast %8: bf16[s0]
  %10 = pad %0 value f32 -inf low [0, 1] high [s1, 2]: f32[s0 + s1, 771]
  return %4, none, s0 + 3, %7, %9, %10
)");
}

TEST_CASE("nodes with several results, external nodes and effects come back") {
  comes_back(R"(graph
  %0 = input 0: f32[8, 10]
  %1 = input 1: i64[8]
  %2, %3 = nll_loss %0, %1 reduction 1 ignore_index -100: f32[], f32[]
  %4, %5 = extern "aten.sort.default"(%0, -1, true, none, 1.0, -inf, "a\\b\n", [%1, none, 2], dtype("float32"), dim=-1) reason "no lowering": f32[8, 10], i64[8, 10]
  %6 = extern "aten.view_as_complex.default"(%0) reason "opaque": complex64[8, 5]
  extern "aten._assert.default"(%1) reason "an effect"
  %7 = assign %0, %4: f32[8, 10]
  return %2
)");
}

TEST_CASE("constants of every dtype come back") {
  comes_back(R"(graph
  %0 = constant f32 0.1
  %1 = constant f64 0.1
  %2 = constant bf16 0.100097656
  %3 = constant f16 -0.0
  %4 = constant bool true
  %5 = constant i64 -9223372036854775808
  %6 = constant u8 255
  %7 = constant f32 nan
  %8 = constant f64 1e+300
  %9 = constant f32 3.4028235e+38
  return
)");
}

TEST_CASE("value names are free and printed in order of definition") {
  sym::Context context;
  Graph graph = parse("graph\n  %x = input 0: f32[2]\n  %y = neg %x: f32[2]\n  return %y\n", context);
  CHECK(to_text(graph) == "graph\n  %0 = input 0: f32[2]\n  %1 = neg %0: f32[2]\n  return %1\n");
}

TEST_CASE("text outside the grammar is refused") {
  CHECK(parse_error("graph\n  %0 = neg %1: f32[]\n  return\n") ==
        "line 2:12: no such value is defined before this, found '1'");
  CHECK(parse_error("graph\n  %0 = frob: f32[]\n  return\n")
            .starts_with("line 2:12: 'frob' is not an operation"));
  CHECK(parse_error("graph\n  %0 = input 0: f32[n]\n  return\n").find("'n' is not among the sizes given") !=
        std::string::npos);
  CHECK(parse_error("graph\n  %0 = constant u8 256\n  return\n").find("256 does not fit u8") !=
        std::string::npos);
  CHECK(parse_error("graph\n  %0 = input 0\n  return\n").find("expected 1 types") != std::string::npos);
  CHECK(
      parse_error("graph\n  %0 = constant f32 1\n  %0 = constant f32 2\n  return\n").find("defined twice") !=
      std::string::npos);
  CHECK(parse_error("graph\n  %0 = input 0: f32[2]\n").find("expected an operation") != std::string::npos);
}
