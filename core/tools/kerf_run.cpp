// kerf_run FILE: executes a graph, program or kernel text on seeded data three ways (as it stands in the interpreter, fused
// and scheduled in the interpreter, compiled) and compares. Graphs and programs with extern calls need a library and are
// refused. Exit status 0 only when all agree.
#include <CLI/CLI.hpp>

#include <cmath>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "codegen/compile.h"
#include "graph/parse.h"
#include "graph/passes/passes.h"
#include "loop/interp_program.h"
#include "loop/parse.h"
#include "loop/walk.h"
#include "lower/lower.h"
#include "sched/schedule_program.h"
#include "sched/split_folds.h"

namespace kerf {
namespace {

struct Options {
  std::string file;
  uint64_t seed = 1;
  std::vector<int64_t> sizes;
};

using Results = std::vector<std::vector<Scalar>>;

loop::Program program_of(const std::string& text, sym::Context& context) {
  base::Lexer lexer(text);
  if (lexer.is("program")) return loop::parse_program(text, context);
  if (lexer.is("graph")) return lower::lower(graph::expand_composites(graph::parse(text, context)));
  throw UserError("kerf_run takes a graph or a program; a kernel can be launched from a program");
}

void fill_inputs(const loop::Program& program, loop::ProgramMemory& memory, uint64_t seed) {
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const loop::ProgramBuffer& buffer = program.buffers[b];
    if (buffer.kind != loop::BufferKind::input) continue;
    std::mt19937_64 random(seed + b);
    std::normal_distribution<double> normal;
    auto index = static_cast<target::BufferIndex>(b);
    for (int64_t i = 0; i < memory.elements(index); ++i) {
      Scalar value = is_floating(buffer.dtype)
                         ? Scalar::of(buffer.dtype, normal(random))
                         : Scalar::of_int(buffer.dtype, static_cast<int64_t>(random() % 2));
      store_scalar(memory.data(index), i, value);
    }
  }
}

void run_compiled(const loop::Program& program, loop::ProgramMemory& memory, std::span<const int64_t> sizes,
                  target::KernelError& error) {
  for (const auto& step : program.steps) {
    const auto& launch = std::get<loop::Launch>(step);
    Result<target::CpuArtifact> built = codegen::compile(launch.kernel, codegen::host_target(), {});
    if (!built) throw UserError(built.reason());
    std::vector<void*> buffers;
    for (target::BufferIndex buffer : launch.arguments) buffers.push_back(memory.data(buffer));
    constexpr size_t kAlignment = 64;
    std::vector<char> scratch(static_cast<size_t>(built->scratch_bytes) + kAlignment);
    void* aligned = scratch.data();
    size_t space = scratch.size();
    aligned = std::align(kAlignment, static_cast<size_t>(built->scratch_bytes), aligned, space);
    target::run(*built, buffers.data(), sizes.data(), 0, memory.evaluate(loop::grid_extent(launch.kernel)),
                aligned, &error);
  }
}

Results execute(const loop::Program& program, const Options& options, bool compiled) {
  loop::ProgramMemory memory(program, options.sizes);
  fill_inputs(program, memory, options.seed);
  target::KernelError error;
  if (compiled) {
    run_compiled(program, memory, options.sizes, error);
  } else {
    loop::interpret(program, memory, error);
  }
  if (error.code != target::KernelError::kNone)
    throw UserError(
        fmt::format("a kernel failed: code {}, index {}, bound {}", error.code, error.index, error.bound));
  Results results;
  for (const target::ProgramOutput& output : program.outputs)
    if (output.kind == target::ProgramOutput::Kind::tensor) results.push_back(memory.read(output.view));
  return results;
}

// The largest difference relative to the largest magnitude; infinite where one side is NaN.
double difference(const std::vector<Scalar>& a, const std::vector<Scalar>& b) {
  double largest = 0, magnitude = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    double x = a[i].as_double(), y = b[i].as_double();
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    double apart = std::abs(x - y);
    largest = std::isnan(apart) ? HUGE_VAL : std::max(largest, apart);
    magnitude = std::max(magnitude, std::abs(x));
  }
  return largest == 0 ? 0 : largest / std::max(magnitude, 1e-300);
}

int run(const Options& options) {
  std::ifstream file(options.file);
  if (!file) throw UserError("cannot read " + options.file);
  std::stringstream text;
  text << file.rdbuf();
  sym::Context context;
  loop::Program program = program_of(text.str(), context);
  if (options.sizes.size() != program.sizes.size())
    throw UserError(
        fmt::format("the text has {} sizes: give --size for each, in order", program.sizes.size()));
  for (const auto& step : program.steps)
    if (const auto* call = std::get_if<target::ExternCall>(&step))
      throw UserError("needs the library for " + call->op);
  loop::Program fused = sched::fuse_kernels(sched::split_folds(program));
  loop::Program scheduled = sched::schedule_kernels(fused, codegen::host_target());
  Results expected = execute(program, options, false);
  Results interpreted = execute(scheduled, options, false);
  Results compiled = execute(scheduled, options, true);
  constexpr double kTolerance = 1e-5;  // f32 sums in another order
  bool agree = true;
  for (size_t o = 0; o < expected.size(); ++o) {
    double first = difference(expected[o], interpreted[o]), second = difference(expected[o], compiled[o]);
    fmt::print("output {}: scheduled {:.1e}, compiled {:.1e}\n", o, first, second);
    agree = agree && first <= kTolerance && second <= kTolerance;
  }
  fmt::print("{} kernels, fused to {}; {}\n", program.steps.size(), scheduled.steps.size(),
             agree ? "all agree" : "DIFFERENT");
  return agree ? 0 : 1;
}

}  // namespace
}  // namespace kerf

int main(int argc, char** argv) {
  kerf::Options options;
  CLI::App app{"Executes a graph or program text in the interpreter and compiled, and compares"};
  app.add_option("file", options.file, "graph or program text")->required();
  app.add_option("--seed", options.seed, "of the input data");
  app.add_option("--size", options.sizes, "values of the text's sizes, in order");
  CLI11_PARSE(app, argc, argv);
  try {
    return kerf::run(options);
  } catch (const kerf::Error& error) {
    std::cerr << "kerf_run: " << error.what() << "\n";
    return 2;
  }
}
