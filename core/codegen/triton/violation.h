#pragma once
#include <string>

namespace kerf::triton {

// One thing that is wrong with a kernel's text. The message says what to do.
struct Violation {
  int line = 0;
  std::string rule;  // a word, "mask"; check_text.h lists them
  std::string message;
  friend bool operator==(const Violation&, const Violation&) = default;
};

}  // namespace kerf::triton
