#include "driver/text_pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/renumber.h"
#include "loop/verify.h"

namespace kerf::driver {

namespace {

using loop::Kernel;

bool is_program(std::string_view text) { return base::Lexer(text).is("program"); }

// Invalid input is the text's fault; invalid output would be the pass's.
void require_valid(const Kernel& kernel) {
  std::vector<std::string> errors = loop::verify(kernel);
  if (!errors.empty()) throw UserError(fmt::format("{}", fmt::join(errors, "\n")));
}

// A kernel pass over the text of one kernel, or over each kernel of a program.
template <Kernel (*pass)(const Kernel&)>
std::string on_kernels(std::string_view text) {
  sym::Context context;
  auto run = [](const Kernel& kernel) {
    require_valid(kernel);
    Kernel result = pass(kernel);
    loop::check_valid(result, "after the pass");
    return result;
  };
  if (!is_program(text)) return loop::to_text(run(loop::parse_kernel(text, context)));
  loop::Program program = loop::parse_program(text, context);
  for (auto& step : program.steps)
    if (auto* launch = std::get_if<loop::Launch>(&step)) launch->kernel = run(launch->kernel);
  return loop::to_text(program);
}

std::string parse_and_print(std::string_view text) {
  sym::Context context;
  if (is_program(text)) return loop::to_text(loop::parse_program(text, context));
  return loop::to_text(loop::parse_kernel(text, context));
}

std::string print_canonical(std::string_view text) {
  sym::Context context;
  Kernel kernel = loop::parse_kernel(text, context);
  require_valid(kernel);
  return loop::canonical_text(kernel);
}

Kernel unchanged(const Kernel& kernel) { return kernel; }

constexpr TextPass kPasses[] = {
    // loop
    {"roundtrip", "parse and print a kernel or program, valid or not", parse_and_print},
    {"verify", "check all invariants", on_kernels<unchanged>},
    {"renumber", "canonical numbers", on_kernels<loop::renumber>},
    {"remove_dead_values", "drop what no store depends on", on_kernels<loop::remove_dead_values>},
    {"canonical_text", "the text that identifies equal kernels", print_canonical},
};

}  // namespace

std::span<const TextPass> text_passes() { return kPasses; }

const TextPass& find_text_pass(std::string_view name) {
  auto found = std::ranges::find(kPasses, name, &TextPass::name);
  if (found == std::end(kPasses))
    throw UserError(fmt::format("no pass '{}'; kerf_opt --list shows them", name));
  return *found;
}

std::string run_text_passes(std::string_view names, std::string_view text) {
  std::string current(text);
  while (!names.empty()) {
    size_t comma = std::min(names.find(','), names.size());
    std::string_view name = names.substr(0, comma);
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    current = find_text_pass(name.substr(0, name.find_last_not_of(' ') + 1)).run(current);
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return current;
}

}  // namespace kerf::driver
