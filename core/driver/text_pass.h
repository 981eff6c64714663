#pragma once
// Passes by name, from text to text: what kerf_opt runs and golden tests name. A pass reads its input in a context
// of its own, verifies before and after where it works on an IR, and throws kerf::Error for what it cannot take.
// The compile pipeline (pipeline.cpp) calls the passes themselves and does not come through here.
#include <span>
#include <string>
#include <string_view>

namespace kerf::driver {

struct TextPass {
  std::string_view name;
  std::string_view help;
  std::string (*run)(std::string_view text);
};

// The table in text_pass.cpp: a new pass is one line there.
std::span<const TextPass> text_passes();

// UserError if there is no pass of that name.
const TextPass& find_text_pass(std::string_view name);

// `a,b`: one after the other.
std::string run_text_passes(std::string_view names, std::string_view text);

}  // namespace kerf::driver
