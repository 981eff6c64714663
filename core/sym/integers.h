#pragma once
// Overflow-checked int64 arithmetic; nullopt means the result does not fit.
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>

namespace kerf::sym {

inline constexpr int64_t kMinInt = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();

// Wide enough for the sum of any number of int64 and the product of two.
__extension__ typedef __int128 Wide;

inline bool fits(Wide value) { return value >= kMinInt && value <= kMaxInt; }

inline std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

inline std::optional<int64_t> checked_sub(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_sub_overflow(a, b, &result)) return std::nullopt;
  return result;
}

inline std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// Never negative, except that gcd(min, min) and gcd(min, 0), which do not fit, are given as 1.
inline int64_t gcd_int(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
  uint64_t y = b < 0 ? 0 - static_cast<uint64_t>(b) : static_cast<uint64_t>(b);
  uint64_t result = std::gcd(x, y);
  return result > static_cast<uint64_t>(kMaxInt) ? 1 : static_cast<int64_t>(result);
}

}  // namespace kerf::sym
