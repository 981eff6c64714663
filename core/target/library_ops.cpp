#include "target/library_ops.h"

#include <algorithm>
#include <utility>

namespace kerf::target {

namespace {

constexpr std::pair<std::string_view, std::string_view> kRows[] = {
#define LIBRARY_OP(word, reason) {word, reason},
#include "target/library_ops.def"
#undef LIBRARY_OP
};

bool has_word(std::string_view name, std::string_view word) {
  while (!name.empty()) {
    const size_t end = std::min(name.find('_'), name.size());
    if (name.substr(0, end) == word) return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

}  // namespace

std::string_view library_reason(std::string_view op) {
  const size_t dot = op.find('.');
  std::string_view name = dot == op.npos ? op : op.substr(dot + 1);
  name = name.substr(0, name.find('.'));
  for (const auto& [word, reason] : kRows)
    if (has_word(name, word)) return reason;
  return {};
}

}  // namespace kerf::target
