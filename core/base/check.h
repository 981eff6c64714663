#pragma once
// CHECK(condition, "format {}", args...): an invariant of ours, always on. A failed check throws
// InternalError naming the condition and place; the driver adds the pass and writes the replay file.
#include <fmt/format.h>

#include "base/error.h"

namespace kerf::base {

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);

}  // namespace kerf::base

#define CHECK(condition, ...)                                                                 \
  do {                                                                                        \
    if (!(condition)) [[unlikely]]                                                            \
      ::kerf::base::check_failed(#condition, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
  } while (false)

// For a switch over an enum without default: the place after it.
#define UNREACHABLE(...) \
  ::kerf::base::check_failed("unreachable", __FILE__, __LINE__, ::fmt::format(__VA_ARGS__))
