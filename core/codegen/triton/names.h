#pragma once
// Names in one function: each is given out once, with a number where the wish is taken.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace kerf::codegen::triton {

class Names {
 public:
  // What Python, Triton and the emitter use themselves.
  Names()
      : used_{"tl",    "triton", "libdevice", "tile",   "and",    "or",   "not",  "if",    "in",
              "is",    "for",    "def",       "return", "lambda", "from", "as",   "while", "del",
              "pass",  "with",   "try",       "min",    "max",    "None", "True", "False", "range",
              "float", "global", "import",    "class",  "else",   "elif"} {}

  std::string give(std::string_view wish) {
    std::string name(wish);
    while (!used_.insert(name).second) name = fmt::format("{}_{}", wish, ++count_[std::string(wish)]);
    return name;
  }

 private:
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> count_;
};

}  // namespace kerf::codegen::triton
