#include "driver/plan_cache.h"
#include "driver/report_text.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "../runtime/fake_host.h"
#include "codegen/compile.h"
#include "graph/parse.h"
#include "runtime/plan_text.h"

using namespace kerf;
using namespace kerf::driver;

namespace fs = std::filesystem;

namespace {

constexpr const char* kGraph =
    "graph given n in [1, 100]\n"
    "size n = input 0 dim 0\n"
    "  %0 = input 0: f32[n]\n"
    "  %1 = add %0, %0: f32[n]\n"
    "  %2 = reduce sum %1 dims [0]: f32[]\n"
    "  return %1, %2\n";

struct Case {
  Case() {
    std::string name = (fs::temp_directory_path() / "kerf-plans-XXXXXX").string();
    directory = mkdtemp(name.data());
    options.cache_dir = (directory / "cache").string();
  }
  ~Case() { fs::remove_all(directory); }

  Compiled compile(const char* text = kGraph) {
    auto context = std::make_shared<sym::Context>();
    graph::Graph graph = graph::parse(text, *context);
    return driver::compile(graph, context, options);
  }

  // Of the only entry.
  fs::path entry() const {
    std::vector<fs::path> paths;
    for (const auto& file : fs::directory_iterator(options.cache_dir)) paths.push_back(file.path());
    REQUIRE(paths.size() == 1);
    return paths[0];
  }

  fs::path directory;
  CompileOptions options;
};

std::vector<float> run(const Compiled& compiled, std::vector<float> values) {
  runtime::testing::FakeHost host;
  runtime::CallInput input;
  input.tensor = host.floats(values)->ref();
  auto outputs = compiled.executor->run(host, std::vector<runtime::CallInput>{input});
  std::vector<float> result;
  for (const runtime::CallOutput& output : outputs) {
    auto* tensor = static_cast<runtime::testing::FakeTensor*>(output.tensor);
    size_t count = tensor->shape.empty() ? 1 : static_cast<size_t>(tensor->shape[0]);
    result.insert(result.end(), tensor->as<float>(), tensor->as<float>() + count);
  }
  return result;
}

}  // namespace

TEST_CASE("what is loaded is what was compiled") {
  Case test;
  Compiled cold = test.compile();
  Compiled warm = test.compile();
  CHECK_FALSE(cold.report.cache_hit);
  CHECK(warm.report.cache_hit);
  CHECK(warm.key == cold.key);
  CHECK(runtime::to_text(*warm.plan) == runtime::to_text(*cold.plan));
  CHECK(run(cold, {1, 2, 4}) == std::vector<float>{2, 4, 8, 14});
  CHECK(run(warm, {1, 2, 4, 8}) == std::vector<float>{2, 4, 8, 16, 30});

  CHECK(report_text(warm.report) == report_text(cold.report));
  CHECK(warm.report.graph_text == cold.report.graph_text);
  CHECK(warm.report.seconds[0].first == "load");
  CHECK(warm.report.warnings.empty());
}

TEST_CASE("a damaged entry is reported and built anew") {
  Case test;
  test.compile();
  fs::path entry = test.entry();
  for (uintmax_t size : {uintmax_t{0}, uintmax_t{20}, fs::file_size(entry) / 2}) {
    fs::resize_file(entry, size);
    Compiled again = test.compile();
    CHECK_FALSE(again.report.cache_hit);
    REQUIRE(again.report.warnings.size() == 1);
    CHECK(again.report.warnings[0].find("is damaged") != std::string::npos);
    CHECK(run(again, {1, 2}) == std::vector<float>{2, 4, 6});
    CHECK(test.compile().report.cache_hit);
  }
}

TEST_CASE("graphs, options and machines have keys of their own") {
  Case test;
  std::string first = test.compile().key;
  std::string text = kGraph;
  CHECK(test.compile(text.replace(text.find("add"), 3, "mul").c_str()).key != first);
  text = kGraph;
  CHECK(test.compile(text.replace(text.find("100"), 3, "101").c_str()).key != first);
  test.options.opt_level = 0;
  std::string other = test.compile().key;
  CHECK(other != first);
  test.options = {.cache_dir = test.options.cache_dir};
  CHECK(test.compile().key == first);
  if (codegen::name() == "interpreter") return;  // one machine like the other
  setenv("KERF_CPU", "avx2", 1);
  CHECK(test.compile().key != first);
  unsetenv("KERF_CPU");
}

TEST_CASE("texts are made by compiling, and without a directory nothing is kept") {
  Case test;
  test.compile();
  test.options.keep_text = true;
  Compiled texts = test.compile();
  CHECK_FALSE(texts.report.cache_hit);
  CHECK_FALSE(texts.report.source_text.empty());
  test.options = {};
  CHECK(test.compile().key.empty());
  CHECK_FALSE(test.compile().report.cache_hit);
}
