#include "same_as_interpreter.h"

#include "loop/parse.h"
#include "loop/verify.h"

#include <doctest/doctest.h>

namespace kerf::testing {

namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

}  // namespace

target::CpuTarget avx2_target() {
  target::CpuTarget target = codegen::host_target();
  target.cpu = "x86-64-v3";
  target.features = "+avx2,+fma,+f16c";
  target.vector_bytes = 32;
  return target;
}

loop::Kernel kernel_of(sym::Context& context, const std::string& text, int lanes) {
  loop::Kernel kernel = loop::parse_kernel(replaced(text, "LANES", std::to_string(lanes)), context);
  std::vector<std::string> problems = loop::verify(kernel);
  REQUIRE_MESSAGE(problems.empty(), (problems.empty() ? "" : problems[0]));
  return kernel;
}

KernelData data_of(const std::string& text, int64_t n, uint64_t seed, Fill fill) {
  sym::Context context;
  // Not verified: with a size known to be 0 the verifier sees loops whose accesses would all be outside.
  std::string sized_text =
      replaced(replaced(text, "given n", "given n = " + std::to_string(n)), "LANES", "1");
  loop::Kernel sized = loop::parse_kernel(sized_text, context);
  return random_data(sized, seed, fill);
}

void check_same_as_interpreter(const std::string& text, const Comparison& comparison) {
  sym::Context context;
  auto compile = [](const loop::Kernel& kernel, const CompiledRun& run) {
    auto artifact = codegen::compile(kernel, run.target, {.level = run.level});
    REQUIRE_MESSAGE(artifact, (artifact ? "" : artifact.reason()));
    return *artifact;
  };
  for (int lanes : {1, 4, 16, 64}) {
    CAPTURE(lanes);
    loop::Kernel kernel = kernel_of(context, text, lanes);
    target::CpuArtifact plain = compile(kernel, {.level = codegen::OptLevel::O0});
    target::CpuArtifact wide = compile(kernel, {});
    target::CpuArtifact narrow = compile(kernel, {.target = avx2_target()});
    for (int64_t n = 0; n <= comparison.largest; ++n) {
      CAPTURE(n);
      KernelData data = data_of(text, n, static_cast<uint64_t>(n), comparison.fill);
      KernelData expected = interpreted(kernel, data);
      auto check = [&](const char* how, const target::CpuArtifact& artifact, int64_t parts) {
        INFO(how);
        KernelData actual = executed(kernel, artifact, data, parts);
        REQUIRE_EQ(difference(kernel, expected, actual, comparison.ulps).value_or(""), "");
      };
      check("O0", plain, 1);
      check("O2", wide, 1);
      check("O2 in three parts", wide, 3);
      check("AVX2", narrow, 1);
    }
  }
}

}  // namespace kerf::testing
