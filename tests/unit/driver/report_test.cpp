#include "driver/report.h"

#include "driver/compile.h"
#include "driver/stage.h"
#include "driver/text_pass.h"
#include "graph/parse.h"

#include <doctest/doctest.h>

#include <filesystem>

using namespace kerf;
using namespace kerf::driver;

namespace {

constexpr const char* kRows = R"(graph given n in [1, 4096]
  size n = input 0 dim 0
  %0 = input 0: f32[n, 64]
  %1 = input 1: f32[64]
  %2 = mul %0, %1: f32[n, 64] @ "model.py:3"
  %3 = reduce max %2 dims [1]: f32[n] @ "model.py:4"
  %4, %5 = extern "aten.sort.default"(%3, -1, false) reason "no lowering for aten.sort.default": f32[n], i64[n] @ "model.py:5"
  return %4
)";

CompileReport report_of(const char* text, CompileOptions options) {
  auto context = std::make_shared<sym::Context>();
  graph::Graph graph = graph::parse(text, *context);
  return compile(graph, context, options).report;
}

}  // namespace

TEST_CASE("bytes are those of the hinted sizes, each buffer once") {
  CompileReport report = report_of(kRows, {.hints = {{"n", 100}}});
  REQUIRE(report.steps.kernels.size() == 1);
  const KernelRecord& kernel = report.steps.kernels[0];
  CHECK(kernel.bytes_read == 4 * (100 * 64 + 64));
  CHECK(kernel.bytes_written == 4 * 100);
  CHECK(kernel.sources == std::vector<std::string>{"model.py:3", "model.py:4"});
  REQUIRE(report.steps.externs.size() == 1);
  const ExternRecord& sort = report.steps.externs[0];
  CHECK(sort.bytes == 100 * (4 + 4 + 8));
  CHECK(sort.source == "model.py:5");
  CHECK_FALSE(sort.is_library);
  CHECK(report.peak_bytes >= 100 * (4 + 4));
}

TEST_CASE("a size without a hint counts 64, clamped to its range") {
  CompileReport report = report_of(kRows, {});
  CHECK(report.steps.kernels.at(0).bytes_written == 4 * 64);
}

TEST_CASE("each member says why it is in its kernel") {
  CompileReport report = report_of(kRows, {});
  const std::vector<loop::Merged>& members = report.steps.kernels.at(0).members;
  REQUIRE(members.size() == 2);
  CHECK(members[0].why == "the first of the group");
  CHECK(members[1].why == "reads " + members[0].name + ", never in memory");
  CHECK(members[1].sources == std::vector<std::string>{"model.py:4"});
}

TEST_CASE("phases add up to the total") {
  CompileReport report = report_of(kRows, {});
  double total = 0, phases = 0;
  for (const auto& [phase, seconds] : report.seconds) (phase == "total" ? total : phases) += seconds;
  CHECK(phases > 0);
  CHECK(phases <= total);
}

TEST_CASE("a failing pass is named, whatever it throws") {
  Stages stages("", false);
  auto message = [&](auto fails) -> std::string {
    try {
      stages.run("lower", "break", fails);
    } catch (const InternalError& error) {
      return error.what();
    }
    return {};
  };
  CHECK(message([]() -> int { throw InternalError("expected a row"); }) == "in pass break: expected a row");
  CHECK(message([]() -> int { throw std::out_of_range("map::at"); }) == "in pass break: map::at");
  CHECK_THROWS_WITH_AS(stages.run("build", "break", []() -> int { throw RuntimeError("no LLVM"); }),
                       "in pass break: no LLVM", RuntimeError);
  CHECK_THROWS_WITH_AS(stages.run("build", "break", []() -> int { throw UserError("bad option"); }),
                       "bad option", UserError);
}

TEST_CASE("a folder that takes no dumps is a problem told, not an error") {
  CompileReport report = report_of(kRows, {.dump_dir = "/dev/null/folder"});
  CHECK(report.dump_problem.find("cannot write /dev/null/folder") == 0);
}

TEST_CASE("the pass `compile` gives the plan or the error of that compile") {
  CHECK(run_text_passes("compile", kRows).find("plan given n in [1, 4096]") == 0);
  CHECK_THROWS_AS(
      run_text_passes("compile", "graph\n  %0 = input 0: f32[2]\n  %1 = input 0: f32[2]\n  return %0\n"),
      InternalError);
}
