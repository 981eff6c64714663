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

// From so many keys on, the library's attention is faster. Its time by that of two products and a fused softmax, one
// thread, without gradients, 2 batches, 8 heads of 64: in f32 1.15 with 256 keys, 0.81 with 384, 0.75 with 512; in bf16
// 1.07 with 197, 0.95 with 256, 0.85 with 512. Memory at 512 keys: a tenth in f32, a fifth in bf16.
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
