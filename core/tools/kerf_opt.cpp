// kerf_opt: reads the text of a kernel or program, runs the named passes, prints what comes out.
//   kerf_opt --passes=verify,remove_dead_values kernel.txt      (standard input without a file)
//   kerf_opt --check-npu 910B3 softmax.py                       (the rules of kernel text; exit status 1 if one is broken)
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/error.h"
#include "driver/check_kernel.h"
#include "driver/text_pass.h"

namespace {

std::string read_all(std::istream& in) { return {std::istreambuf_iterator<char>(in), {}}; }

std::string read_file(const std::string& path) {
  if (path.empty()) return read_all(std::cin);
  std::ifstream in(path);
  if (!in) throw kerf::UserError("cannot read " + path);
  return read_all(in);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs passes over the text form of Kerf's IRs.");
  std::string passes = "roundtrip";
  std::string path;
  std::string npu;
  bool list = false;
  app.add_option("--passes", passes, "comma-separated names, run in order");
  app.add_option("file", path, "input text; standard input if absent");
  app.add_option("--check-npu", npu, "check a kernel file against the rules of this target instead");
  app.add_flag("--list", list, "show the passes");
  CLI11_PARSE(app, argc, argv);
  try {
    if (list) {
      for (const auto& pass : kerf::driver::text_passes())
        std::cout << pass.name << "  " << pass.help << '\n';
      return 0;
    }
    if (!npu.empty()) {
      auto violations = kerf::driver::check_kernel_text(read_file(path), npu);
      std::cout << kerf::driver::to_text(violations, path.empty() ? "-" : path);
      return violations.empty() ? 0 : 1;
    }
    std::cout << kerf::driver::run_text_passes(passes, read_file(path));
  } catch (const kerf::Error& error) {
    std::cerr << "kerf_opt: " << error.what() << '\n';
    return 1;
  }
}
