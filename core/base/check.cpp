#include "base/check.h"

namespace kerf::base {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  throw InternalError(
      fmt::format("{} ({} failed at {}:{}); this is a bug in kerf", message, condition, file, line));
}

}  // namespace kerf::base
