// The builder: inferred types, and nodes that are not made because they would change nothing.
#include "graph/build.h"
#include "graph/print.h"
#include "graph/verify.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::graph;
using ops::ReduceOp;
using ops::ScalarOp;

namespace {

struct Fixture {
  sym::Context context;
  Graph graph{.context = &context};
  Builder builder{graph};
  sym::Expr s0 = context.symbol("s0", sym::SymbolKind::size);

  Fixture() { graph.sizes.push_back({s0, {2, 64}, {}}); }
  sym::Expr n(int64_t value) { return context.constant(value); }
  ValueId input(DType dtype, std::vector<sym::Expr> shape) {
    int index = static_cast<int>(graph.nodes.size());
    auto strides = contiguous_strides(context, shape);
    return builder.input(index, {.dtype = dtype, .shape = std::move(shape), .strides = std::move(strides)});
  }
  std::string type(ValueId value) { return to_text(graph.type(value), context); }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "apply broadcasts trailing dimensions") {
  ValueId a = input(DType::f32, {s0, n(1), n(3)}), b = input(DType::f32, {n(4), n(1)});
  CHECK(type(builder.apply(ScalarOp::add, {a, b})) == "f32[s0, 4, 3]");
  CHECK(type(builder.apply(ScalarOp::lt, {a, b})) == "bool[s0, 4, 3]");
  CHECK(verify(graph).empty());
}

TEST_CASE_FIXTURE(Fixture, "operands that do not fit are internal errors") {
  ValueId a = input(DType::f32, {n(3)}), b = input(DType::f32, {n(4)}), c = input(DType::bf16, {n(3)});
  CHECK_THROWS_WITH_AS(builder.apply(ScalarOp::add, {a, b}),
                       doctest::Contains("sizes 3 and 4 do not broadcast"), InternalError);
  CHECK_THROWS_WITH_AS(builder.apply(ScalarOp::add, {c, c}),
                       doctest::Contains("add does not take bf16, bf16"), InternalError);
  CHECK_THROWS_WITH_AS(builder.reshape(a, {n(4)}), doctest::Contains("different numbers of elements"),
                       InternalError);
  CHECK_THROWS_AS(builder.reduce(ReduceOp::any, a, {0}), InternalError);
}

TEST_CASE_FIXTURE(Fixture, "reduce removes dimensions, keepdim puts them back") {
  ValueId a = input(DType::f32, {s0, n(3), n(5)});
  CHECK(type(builder.reduce(ReduceOp::sum, a, {2, 0})) == "f32[3]");
  CHECK(type(builder.reduce(ReduceOp::sum, a, {1}, true)) == "f32[s0, 1, 5]");
  CHECK(type(builder.reduce(ReduceOp::argmax, a, {1})) == "i64[s0, 5]");
}

TEST_CASE_FIXTURE(Fixture, "views") {
  ValueId a = input(DType::f32, {s0, n(6)});
  CHECK(type(builder.permute(a, {1, 0})) == "f32[6, s0]");
  CHECK(type(builder.reshape(a, {s0, n(2), n(3)})) == "f32[s0, 2, 3]");
  CHECK(type(builder.expand(a, {n(4), s0, n(6)})) == "f32[4, s0, 6]");
  CHECK(type(builder.slice(a, 1, n(1), n(2), 3)) == "f32[s0, 2]");
  CHECK(type(builder.unsqueeze(a, 2)) == "f32[s0, 6, 1]");
  CHECK_THROWS_AS(builder.slice(a, 1, n(1), n(3), 3), InternalError);
}

TEST_CASE_FIXTURE(Fixture, "what changes nothing makes no node") {
  ValueId a = input(DType::f32, {s0, n(6)});
  CHECK(builder.cast(a, DType::f32) == a);
  CHECK(builder.permute(a, {0, 1}) == a);
  CHECK(builder.reshape(a, {s0, n(6)}) == a);
  CHECK(builder.slice(a, 1, n(0), n(6), 1) == a);
  CHECK(builder.copy(a, DType::f32) != a);
}

TEST_CASE_FIXTURE(Fixture, "sizes as values") {
  CHECK(to_text(graph, graph.nodes[graph.values[builder.size_value(n(7))].producer]) ==
        "%0 = constant i64 7");
  CHECK(type(builder.size_value(s0 * 2)) == "i64[]");
  CHECK(verify(graph).empty());
}

TEST_CASE_FIXTURE(Fixture, "one text is one source") {
  CHECK(builder.add_source("a.py:1") == builder.add_source("a.py:1"));
  Builder other(graph);
  CHECK(other.add_source("a.py:1") == SourceId(0));
  CHECK(other.add_source("a.py:2") == SourceId(1));
}

TEST_CASE_FIXTURE(Fixture, "contiguous strides count as torch does") {
  CHECK(type(input(DType::f32, {n(2), n(0), n(3)})) == "f32[2, 0, 3]");
  CHECK(contiguous_strides(context, std::vector{n(2), n(0), n(3)})[0] == n(3));
}
