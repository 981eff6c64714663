// The importer's table, and what golden tests cannot show: calls made in C++ and sources.
#include "graph/import_aten.h"

#include <set>

#include "graph/print.h"
#include "graph/verify.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::graph;

namespace {

struct Fixture {
  sym::Context context;
  Graph graph{.context = &context};
  Builder builder{graph};

  TensorType type(DType dtype, std::vector<sym::Expr> shape) {
    auto strides = contiguous_strides(context, shape);
    return {.dtype = dtype, .shape = std::move(shape), .strides = std::move(strides)};
  }
};

}  // namespace

TEST_CASE("every overload has one row") {
  std::vector<std::string> names = imported_overloads();
  CHECK_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  for (const std::string& name : names)
    CHECK((name.starts_with("aten.") || name.starts_with("kerf.") || name.starts_with("prims.")));
}

TEST_CASE_FIXTURE(Fixture, "a call becomes nodes that know the user's line") {
  ValueId x = builder.input(0, type(DType::f32, {context.constant(4)}));
  Call call{.op = "aten.mul.Tensor",
            .arguments = {{x}, {0.5}},
            .results = {type(DType::f32, {context.constant(4)})},
            .source = "model.py:3"};
  graph.outputs.push_back({.kind = Output::Kind::tensor, .value = import_call(builder, call)[0]});
  CHECK_EQ(to_text(graph, Sources::shown),
           "graph\n  %0 = input 0: f32[4]\n  %1 = constant f32 0.5 @ \"model.py:3\"\n"
           "  %2 = mul %0, %1: f32[4] @ \"model.py:3\"\n  return %2\n");
}

TEST_CASE_FIXTURE(Fixture, "a call without a row keeps every argument") {
  ValueId x = builder.input(0, type(DType::f32, {context.constant(4)}));
  ArgumentList list = {{x}, {}, {context.constant(2)}};
  Call call{.op = "aten.frob.default",
            .arguments = {{x}, {list}, {true}, {1.0}},
            .keyword_only = {"flag", "scale"},
            .results = {type(DType::f32, {})}};
  import_call(builder, call);
  CHECK_EQ(
      to_text(graph, graph.nodes[NodeId(1)]),
      "%1 = extern \"aten.frob.default\"(%0, [%0, none, 2], flag=true, scale=1.0) reason \"no lowering for "
      "aten.frob.default\": f32[]");
  CHECK(verify(graph).empty());
}

TEST_CASE_FIXTURE(Fixture, "a view handed through with other strides is a value of its own") {
  ValueId x = builder.input(0, type(DType::f32, {context.constant(2), context.constant(3)}));
  TensorType transposed = type(DType::f32, {context.constant(2), context.constant(3)});
  transposed.strides = {context.constant(1), context.constant(2)};
  ValueId y =
      import_call(builder, {.op = "aten.alias.default", .arguments = {{x}}, .results = {transposed}})[0];
  CHECK(y != x);
  CHECK(graph.type(y).strides == transposed.strides);
  CHECK(graph.type(x).strides != transposed.strides);
}
