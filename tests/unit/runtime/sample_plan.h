#pragma once
// A plan that has one of everything, for tests of its text and bytes.
#include <limits>

#include "plan_builder.h"

namespace kerf::runtime::testing {

inline Plan sample_plan() {
  PlanBuilder b;
  b.size("n", 0, 0, {1, 4096}, {8, 0});
  b.size("m", 1, -1, {std::nullopt, 7});
  b.size("k", 1, -1, {2, std::nullopt});
  b.size("q", 1, -1, {}, {0, 5});
  b.size("free", 1, -1);
  BufferIndex x = b.input({"n", "64"}, DType::bf16);
  b.integer_input();
  b.input({"3"});
  b.plan().inputs[2].is_used = false;
  b.plan().inputs[2].is_opaque = true;
  BufferIndex t = b.temp({"64*n"});
  BufferIndex y = b.output({"n // 8", "(m % 3) + 1", "64"});
  BufferIndex d = b.adopted({"n"}, DType::i64);
  b.plan().buffers[t].name = "quote \" slash \\ line\nend";
  auto& launch = b.launch(nullptr, {x, t}, {"n", "max(n, m)"}, "n", "64*n", 128);
  launch.sources = {"model.py:3 in forward: x = \"a\\b\"", ""};
  b.plan().artifacts[0].object = std::string(
      "\x7f"
      "ELF\0code",
      9);
  b.launch(nullptr, {}, {}, "1");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  auto torch = [](auto kind, const char* name) { return target::TorchConstant{kind, name}; };
  using Kind = target::TorchConstant::Kind;
  target::ExternArgumentList nested = {{b.expr("-n + 1"), ""}, {target::ExternArgumentList{}, ""}};
  auto& call = b.call("aten.op.default",
                      {{b.view(t, {"n"}, "8*n"), ""},
                       {std::monostate{}, ""},
                       {true, ""},
                       {0.1, "alpha"},
                       {-0.0, ""},
                       {2.0, ""},
                       {1e300, ""},
                       {-kInfinity, ""},
                       {std::string("a \"b\""), "mode"},
                       {torch(Kind::dtype, "float32"), "dtype"},
                       {torch(Kind::layout, "strided"), ""},
                       {torch(Kind::memory_format, "channels_last"), ""},
                       {torch(Kind::device, "cuda:0"), ""},
                       {nested, ""}},
                      d, {"n"}, DType::i64);
  call.results.push_back({target::kNoBuffer, DType::f64, {}, {}, true});
  call.reason = "no lowering";
  call.is_matmul_like = true;
  b.plan().steps.emplace_back(target::ExternCall{.op = "aten.nothing.default"});
  b.output_of(d, {"n"});
  b.output_of(x, {"n", "32"}, "7", 0);
  b.integer_output("n*m - 1");
  b.plan().outputs.push_back({});
  b.temp({"5"});  // never used
  (void)y;
  return *b.finish();
}

}  // namespace kerf::runtime::testing
