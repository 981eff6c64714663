// Violations that no text can express; the others are golden tests (tests/golden/graph/error_*.txt).
#include "graph/verify.h"
#include "graph/build.h"
#include "graph/parse.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::graph;

namespace {

constexpr std::string_view kText = R"(graph given s0
  %0 = input 0: f32[s0, 4]
  %1 = reduce sum %0 dims [1]: f32[s0]
  %2 = neg %1: f32[s0]
  return %2
)";

// The first message about a graph spoilt by `spoil`.
template <class Spoil>
std::string message(Spoil spoil) {
  sym::Context context;
  Graph graph = parse(kText, context);
  REQUIRE(verify(graph).empty());
  spoil(graph);
  std::vector<std::string> errors = verify(graph);
  return errors.empty() ? "valid" : errors[0];
}

}  // namespace

TEST_CASE("ids") {
  CHECK(message([](Graph& g) { g.nodes[NodeId(1)].operands[0] = ValueId(9); }) ==
        "ids: an operand of node 1 is no value");
  CHECK(message([](Graph& g) { g.values[ValueId(1)].producer = NodeId(0); }) ==
        "ids: result 0 of node 1 is not its value");
  CHECK(message([](Graph& g) { g.outputs[0].value = ValueId(9); }) == "ids: an output is no value");
}

TEST_CASE("order") {
  CHECK(message([](Graph& g) {
          g.nodes[NodeId(1)].operands[0] = ValueId(2);
        }).starts_with("order: an operand is defined later"));
}

TEST_CASE("attributes") {
  CHECK(message([](Graph& g) {
          g.nodes[NodeId(1)].attributes.pop_back();
        }).starts_with("attributes: dims is missing"));
  CHECK(message([](Graph& g) {
          g.nodes[NodeId(1)].attributes[1].second = 1.0;
        }).starts_with("attributes: dims is of the wrong kind"));
  CHECK(message([](Graph& g) {
          std::swap(g.nodes[NodeId(1)].attributes[0], g.nodes[NodeId(1)].attributes[1]);
        }).starts_with("attributes: not sorted"));
}

TEST_CASE("sizes") {
  CHECK(message([](Graph& g) { g.sizes.clear(); }).starts_with("sizes: s0 is not among the sizes given"));
  CHECK(message([](Graph& g) { g.sizes.push_back(g.sizes[0]); }) == "sizes: s0 is given twice");
}

TEST_CASE("check_valid throws an internal error that says when") {
  sym::Context context;
  Graph graph = parse(kText, context);
  graph.outputs[0].value = ValueId(9);
  CHECK_THROWS_WITH_AS(check_valid(graph, "after nothing"),
                       doctest::Contains("after nothing: ids: an output is no value"), InternalError);
}
