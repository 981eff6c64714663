// golden_runner DIR [filter]: runs the golden tests DIR/*/*.txt whose path contains `filter`.
//
//   // test: verify, remove_dead_values      passes of driver/text_pass.h, in order
//   // what: one sentence
//   // run: 7                                optional: execute before and after on random data of this seed
//                                            (a graph as what it lowers to); `7, 4 ulp` allows that distance
//   input text
//   // expect:                               the output, exactly
//   output text
// or, in place of `expect`,
//   // error: part of the message            one line or more; the passes must fail with all of them
//
// KERF_BLESS=1 rewrites what is expected; the difference is reviewed as code is.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "../property/kernel_data.h"
#include "base/error.h"
#include "driver/text_pass.h"
#include "loop/interp_program.h"
#include "loop/parse.h"
#include "loop/print.h"

namespace {

namespace fs = std::filesystem;
using namespace kerf;

struct GoldenTest {
  std::string head;  // the comment lines before the input, as they are
  std::string passes;
  std::string what;
  std::string run;
  std::string input;
  std::string expected;
  std::vector<std::string> errors;
  bool expects_output = false;
};

// What passes made of the input.
struct Outcome {
  std::string output;
  std::string error;  // empty: no error
};

std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The rest of a line `// key: rest`.
bool take(const std::string& line, std::string_view key, std::string& rest) {
  std::string start = fmt::format("// {}:", key);
  if (!line.starts_with(start)) return false;
  rest = line.substr(std::min(line.size(), start.size() + 1));
  return true;
}

GoldenTest parse(const std::string& text) {
  GoldenTest test;
  std::string rest;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    std::string line = text.substr(begin, end - begin);
    std::string content = line.substr(0, line.find('\n'));
    begin = end;
    if (test.expects_output) {
      test.expected += line;
    } else if (take(content, "expect", rest)) {
      test.expects_output = true;
    } else if (take(content, "error", rest)) {
      test.errors.push_back(rest);
    } else if (test.input.empty() && content.starts_with("// ")) {
      test.head += line;
      take(content, "test", test.passes) || take(content, "what", test.what) ||
          take(content, "run", test.run);
    } else {
      test.input += line;
    }
  }
  return test;
}

Outcome run_passes(const GoldenTest& test) {
  try {
    return {driver::run_text_passes(test.passes, test.input), ""};
  } catch (const Error& error) {
    return {"", error.what()};
  }
}

struct RunOptions {
  uint64_t seed = 0;
  double ulps = 0;
};

// `7` or `7, 4 ulp`.
RunOptions parse_run(const std::string& text) {
  char* end = nullptr;
  uint64_t seed = std::strtoull(text.c_str(), &end, 10);
  return {seed, *end == ',' ? std::strtod(end + 1, nullptr) : 0};
}

std::string compare_kernels(const std::string& input, const std::string& output, RunOptions options) {
  sym::Context context;
  loop::Kernel before = loop::parse_kernel(input, context);
  loop::Kernel after = loop::parse_kernel(output, context);
  testing::KernelData data = testing::random_data(before, options.seed, testing::Fill::exact);
  testing::KernelData expected = testing::interpreted(before, data);
  return testing::difference(before, expected, testing::interpreted(after, data), options.ulps).value_or("");
}

// The tensors that a program returns for inputs of this seed.
std::vector<std::vector<Scalar>> run_program(const loop::Program& program, uint64_t seed) {
  loop::ProgramMemory memory(program, testing::random_sizes(program.sizes, seed));
  for (target::BufferIndex i = 0; i < program.buffers.size(); ++i) {
    const loop::ProgramBuffer& buffer = program.buffers[i];
    if (buffer.kind != loop::BufferKind::input) continue;
    uint64_t input_seed = seed * 1000 + static_cast<uint64_t>(buffer.input_index);
    testing::fill_random(memory.data(i), memory.elements(i), buffer.dtype, input_seed, testing::Fill::exact);
  }
  target::KernelError error;
  loop::interpret(program, memory, error);
  if (error.code != target::KernelError::kNone) throw UserError("a kernel reports an error on this data");
  std::vector<std::vector<Scalar>> results;
  for (const target::ProgramOutput& output : program.outputs)
    if (output.kind == target::ProgramOutput::Kind::tensor) results.push_back(memory.read(output.view));
  return results;
}

// A graph is run as what it lowers to.
loop::Program parse_program(const std::string& text, sym::Context& context) {
  bool is_graph = base::Lexer(text).is("graph");
  return loop::parse_program(is_graph ? driver::run_text_passes("lower", text) : text, context);
}

std::string compare_programs(const std::string& input, const std::string& output, RunOptions options) {
  sym::Context context;
  auto expected = run_program(parse_program(input, context), options.seed);
  auto actual = run_program(parse_program(output, context), options.seed);
  if (expected.size() != actual.size()) return "another number of outputs";
  for (size_t i = 0; i < expected.size(); ++i)
    for (size_t j = 0; j < expected[i].size(); ++j)
      if (!testing::agree(expected[i][j], actual[i].at(j), options.ulps))
        return fmt::format("output {} element {} is {} and {}", i, j, loop::to_text(expected[i][j]),
                           loop::to_text(actual[i][j]));
  return "";
}

// Executes input and output on the same data, four times.
std::string compare_runs(const GoldenTest& test, const std::string& output) {
  RunOptions options = parse_run(test.run);
  bool is_kernel = base::Lexer(test.input).is("kernel");
  for (int round = 0; round < 4; ++round, ++options.seed) {
    std::string difference = is_kernel ? compare_kernels(test.input, output, options)
                                       : compare_programs(test.input, output, options);
    if (!difference.empty()) return "numbers differ before and after the passes: " + difference;
  }
  return "";
}

std::string first_difference(const std::string& expected, const std::string& actual) {
  size_t at = 0;
  while (at < expected.size() && at < actual.size() && expected[at] == actual[at]) ++at;
  auto line_at = [&](const std::string& text) {
    size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    return begin >= text.size() ? "(the end)" : text.substr(begin, text.find('\n', begin) - begin);
  };
  auto line = std::count(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  return fmt::format("output line {}:\n    expected  {}\n    got       {}", line, line_at(expected),
                     line_at(actual));
}

// Why the test fails; empty if it passes.
std::string judge(const GoldenTest& test, const Outcome& outcome) {
  if (test.passes.empty() || test.what.empty()) return "needs the lines `// test:` and `// what:`";
  if (test.expects_output == !test.errors.empty()) return "needs either `// expect:` or `// error:`";
  if (!test.errors.empty()) {
    if (outcome.error.empty()) return "no error";
    for (const std::string& error : test.errors)
      if (outcome.error.find(error) == std::string::npos)
        return fmt::format("error:\n    expected  {}\n    got       {}", error, outcome.error);
    return "";
  }
  if (!outcome.error.empty()) return "error: " + outcome.error;
  if (outcome.output != test.expected) return first_difference(test.expected, outcome.output);
  return test.run.empty() ? "" : compare_runs(test, outcome.output);
}

void bless(const fs::path& path, const GoldenTest& test, const Outcome& outcome) {
  std::ofstream out(path);
  out << test.head << test.input;
  if (outcome.error.empty()) {
    out << "// expect:\n" << outcome.output;
    return;
  }
  for (size_t begin = 0; begin < outcome.error.size();) {
    size_t end = std::min(outcome.error.find('\n', begin), outcome.error.size());
    out << "// error: " << outcome.error.substr(begin, end - begin) << '\n';
    begin = end + 1;
  }
}

std::vector<fs::path> find_tests(const fs::path& root, std::string_view filter) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().extension() == ".txt" && entry.path().string().find(filter) != std::string::npos)
      paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

// Why the test fails, with blessing done on the way.
std::string run_test(const fs::path& path, bool is_blessing) {
  GoldenTest test = parse(read_file(path));
  Outcome outcome = run_passes(test);
  std::string failure = judge(test, outcome);
  if (failure.empty() || !is_blessing || test.passes.empty()) return failure;
  bless(path, test, outcome);
  return judge(parse(read_file(path)), outcome);  // executing may still fail
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: golden_runner DIR [filter]\n";
    return 2;
  }
  bool is_blessing = std::getenv("KERF_BLESS") != nullptr;
  int passed = 0;
  int failed = 0;
  for (const fs::path& path : find_tests(argv[1], argc > 2 ? argv[2] : "")) {
    std::string failure;
    try {
      failure = run_test(path, is_blessing);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    ++(failure.empty() ? passed : failed);
    if (!failure.empty()) std::cout << "FAILED " << path.string() << "\n  " << failure << '\n';
  }
  std::cout << passed << " passed, " << failed << " failed\n";
  return failed == 0 && passed > 0 ? 0 : 1;
}
