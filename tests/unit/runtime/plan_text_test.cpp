#include "runtime/plan_text.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "runtime/lifetimes.h"
#include "sample_plan.h"

using namespace kerf;
using namespace kerf::runtime;
using namespace kerf::runtime::testing;

TEST_CASE("a plan as text") {
  PlanBuilder b;
  b.size("n", 0, 0, {1, 4096}, {8, 0});
  BufferIndex x = b.input({"n", "64"});
  BufferIndex t = b.temp({"n", "64"});
  BufferIndex y = b.output({"n", "8"});
  b.launch(nullptr, {x, t}, {"n"}, "n", "64*n");
  auto& call = b.call("aten.mm.default", {{b.view(t, {"n", "64"}), ""}, {b.view(x, {"64", "8"}, "n"), ""}}, y,
                      {"n", "8"});
  call.reason = "matmul: library call";
  call.is_matmul_like = true;
  CHECK(to_text(*b.finish()) == R"(plan given n in [1, 4096], n mod 8 = 0
  size n = input 0 dim 0
  input 0: f32[n, 64] strides [64, 1]
  buffer %0 "b0": f32[64*n] input 0 live 0 to 1
  buffer %1 "b1": f32[64*n] arena live 0 to 1
  buffer %2 "b2": f32[8*n] output 0 live 1 to 2
  artifact 0 "k0" scratch 0 object ""
  launch 0 "k0" %0, %1 sizes [n] grid n work 64*n sources ["model.py:3"]
  extern "aten.mm.default"(%1: f32[n, 64] strides [64, 1], %0: f32[64, 8] strides [8, 1] offset n) matmul_like
    result %2: f32[n, 8] strides [8, 1]
    reason "matmul: library call"
    source "model.py:7"
  return %2: f32[n, 8] strides [8, 1]
)");
}

TEST_CASE("text round trip") {
  Plan plan = sample_plan();
  std::vector<std::string> hashes;
  Plan back = parse_plan(to_text(plan), &hashes);
  verify(back);
  REQUIRE(hashes.size() == 2);
  CHECK(hashes[0].size() == 32);
  CHECK(hashes[1].empty());
  back.artifacts[0].object = plan.artifacts[0].object;
  CHECK(to_text(back) == to_text(plan));
  CHECK(back.buffers[1].name == plan.buffers[1].name);
  CHECK(back.sizes[0].range == plan.sizes[0].range);
  CHECK(back.sizes[0].modulus == plan.sizes[0].modulus);
  CHECK(back.sizes[3].modulus == plan.sizes[3].modulus);
  CHECK(back.inputs[2].is_opaque);
  CHECK(std::get<LaunchStep>(back.steps[0]).sources == std::get<LaunchStep>(plan.steps[0]).sources);
  const auto& call = std::get<target::ExternCall>(back.steps[2]);
  CHECK(std::get<double>(call.arguments[3].value) == 0.1);
  CHECK(std::signbit(std::get<double>(call.arguments[4].value)));
  CHECK(std::get<double>(call.arguments[5].value) == 2.0);
  CHECK(std::get<double>(call.arguments[6].value) == 1e300);
  CHECK(call.results[1].is_opaque);
}

TEST_CASE("texts that are not plans are refused at the place") {
  auto refused = [](std::string_view text, int line) {
    try {
      parse_plan(text);
    } catch (const ParseError& error) {
      CHECK_MESSAGE(error.line == line, text << ": " << error.what());
      return;
    }
    FAIL("accepted: " << text);
  };
  refused("", 1);
  refused("program", 1);
  refused("plan given n in [1", 1);
  refused("plan\n  size n = input 0 dim 0", 2);
  refused("plan\n  input 1: f32[] strides []", 2);
  refused("plan\n  buffer %1 \"a\": f32[1] arena never", 2);
  refused("plan\n  buffer %0 \"a\": f33[1] arena never", 2);
  refused("plan\n  buffer %0 \"a\": f32[1] stack never", 2);
  refused("plan\n  launch 0 \"k\" %0 sizes [] grid 1 work 1 sources []", 2);
  refused("plan\n  artifact 0 \"k\" scratch -1 object \"\"", 2);
  refused("plan\n  return %0: f32[] strides []", 2);
  refused("plan\n  frobnicate", 2);
  refused("plan\n  return none none", 2);
  refused("plan\n  extern \"a\"(" + std::string(10000, '['), 2);
}
