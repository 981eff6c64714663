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

// From so many keys on, the library's attention is faster, the repair of lost rows included: measured in
// docs/decisions/0027.
constexpr int64_t kLeastKeys = 384;
constexpr int64_t kLeastKeysHalf = 256;

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

bool prefers_library_attention(DType dtype, std::optional<int64_t> keys) {
  if (dtype == DType::f32) return keys.value_or(kLeastKeys) >= kLeastKeys;
  return dtype == DType::bf16 && keys.value_or(kLeastKeysHalf) >= kLeastKeysHalf;
}

}  // namespace kerf::target
