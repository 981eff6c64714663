#pragma once
// Variables of the environment, read when asked for.
#include <cstdlib>
#include <string>

namespace kerf {

// Empty where the variable is not set.
inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace kerf
