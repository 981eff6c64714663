#include "graph/promote.h"

#include <algorithm>
#include <optional>

namespace kerf::graph {

namespace {

// The smallest signed type that holds u8 and the signed type.
DType with_u8(DType dtype) { return dtype == DType::i8 ? DType::i16 : dtype; }

std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (is_floating(*higher)) return higher;
  if (*higher == DType::b1 || is_floating(*lower)) return promote(*higher, *lower);
  return higher;
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b || b == DType::b1) return a;
  if (a == DType::b1) return b;
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  if (is_floating(a)) return byte_size(a) == byte_size(b) ? DType::f32 : std::max(a, b);
  if (a == DType::u8) return with_u8(b);
  if (b == DType::u8) return with_u8(a);
  return std::max(a, b);
}

DType result_type(std::span<const Promoted> operands) {
  std::optional<DType> of[3];
  for (const Promoted& operand : operands) {
    std::optional<DType>& dtype = of[static_cast<size_t>(operand.standing)];
    dtype = dtype ? promote(*dtype, operand.dtype) : operand.dtype;
  }
  return combine(combine(of[0], of[1]), of[2]).value_or(DType::f32);
}

}  // namespace kerf::graph
