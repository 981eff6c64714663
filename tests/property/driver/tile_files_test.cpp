// On random graphs: every kernel file for a target that computes in tiles keeps the target's rules with all its choices of
// blocks, and does not depend on what was compiled before.
#include <cstdlib>

#include "codegen/triton/check_text.h"
#include "driver/compile_tiles.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "random_graph.h"

#undef CHECK  // doctest has its own
#include <doctest/doctest.h>

using namespace kerf;

namespace {

uint64_t seeds() {
  const char* more = std::getenv("KERF_SEEDS");
  return more ? std::strtoull(more, nullptr, 10) : 60;
}

// Random graphs compute in f64, which an NPU has not.
graph::Graph in_f32(const graph::Graph& graph, sym::Context& context) {
  std::string text = graph::to_text(graph);
  for (size_t at = 0; (at = text.find("f64", at)) != std::string::npos;) text.replace(at, 3, "f32");
  return graph::parse(text, context);
}

struct Choices {
  size_t kernels = 0, choices = 0;
};

void check_files(const std::string& target, Choices& seen) {
  driver::KnownTilings all;
  for (uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    sym::Context context;
    testing::RandomGraphOptions options{
        .nodes = 8, .dynamic = seed % 4 == 0, .extents = {1, 2, 3, 31, 64, 257}};
    graph::Graph graph = in_f32(testing::random_graph(context, seed, options), context);
    driver::TileTarget found = driver::find_tile_target(target);
    auto compile = [&](driver::KnownTilings& known) {
      return driver::compile_tiles(graph, found, {}, target::Router(found.device), known);
    };
    driver::KnownTilings none;
    driver::TileCompilation fresh = compile(none), again = compile(all), known = compile(all);
    REQUIRE(fresh.kernels.size() == known.kernels.size());
    REQUIRE(fresh.refused.size() == known.refused.size());
    for (size_t i = 0; i < fresh.kernels.size(); ++i) {
      const std::string& text = fresh.kernels[i].text;
      CHECK(again.kernels[i].text == text);
      CHECK(known.kernels[i].text == text);
      ++seen.kernels, seen.choices += fresh.kernels[i].blocks.size();
      for (const triton::Violation& violation : triton::check_text(text).violations)
        FAIL_CHECK(violation.line << ": " << violation.rule << ": " << violation.message << "\n" << text);
    }
    for (size_t i = 0; i < fresh.refused.size(); ++i)
      CHECK(known.refused[i].reason == fresh.refused[i].reason);
  }
}

}  // namespace

TEST_CASE("kernel files of random graphs keep the rules, with all choices of blocks") {
  for (const char* target : {"npu:910B3", "npu:950", "cuda"}) {
    CAPTURE(target);
    Choices seen;
    check_files(target, seen);
    CHECK(seen.kernels > seeds() / 2);
    CHECK(seen.choices > seen.kernels);
  }
}
