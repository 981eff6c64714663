// The text of generated LLVM IR, in tests/golden/llvm/*.ll: the kernel in lines that begin with `;; `, then what it
// must become. KERF_BLESS=1 rewrites what is expected; the difference is reviewed as code is.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "codegen/compile.h"
#include "loop/parse.h"

#include <doctest/doctest.h>

using namespace kerf;

namespace fs = std::filesystem;

namespace {

struct Golden {
  std::string head;  // the kernel's lines as they are
  std::string kernel;
  std::string expected;
};

Golden read_golden(const fs::path& path) {
  std::ifstream in(path);
  Golden golden;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(";; ")) {
      golden.head += line + "\n";
      golden.kernel += line.substr(3) + "\n";
    } else {
      golden.expected += line + "\n";
    }
  }
  return golden;
}

}  // namespace

TEST_CASE("kernels become the LLVM IR of the golden files") {
  fs::path folder = KERF_GOLDEN_LLVM;
  target::CpuTarget wide = {.cpu = "x86-64-v4", .vector_bytes = 64};
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".ll") continue;
    ++files;
    CAPTURE(entry.path().filename().string());
    Golden golden = read_golden(entry.path());
    sym::Context context;
    Result<std::string> text = codegen::emit(loop::parse_kernel(golden.kernel, context), wide);
    REQUIRE(text);
    if (std::getenv("KERF_BLESS")) {
      std::ofstream(entry.path()) << golden.head << *text;
    } else {
      CHECK_EQ(*text, golden.expected);
    }
  }
  CHECK_GE(files, 3);
}
