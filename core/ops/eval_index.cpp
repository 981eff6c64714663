#include "ops/eval.h"

namespace kerf::ops {

namespace {

// Philox2x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"), first output
// word. Every target computes the same words, so equal seeds give equal numbers everywhere.
uint32_t philox2x32(uint64_t counter, uint32_t key) {
  constexpr uint64_t kMultiplier = 0xD256D193;
  constexpr uint32_t kWeyl = 0x9E3779B9;
  auto first = static_cast<uint32_t>(counter);
  auto second = static_cast<uint32_t>(counter >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t product = kMultiplier * first;
    first = static_cast<uint32_t>(product >> 32) ^ key ^ second;
    second = static_cast<uint32_t>(product);
    key += kWeyl;
  }
  return first;
}

}  // namespace

Scalar eval_check_index(DType result, Operands x) {
  int64_t index = x[0].i, bound = x[1].i;
  return Scalar::of_int(result, index >= 0 && index < bound ? index : 0);
}

Scalar eval_wrap_index(DType result, Operands x) {
  int64_t index = x[0].i, bound = x[1].i;
  if (index < 0 && bound > 0 && index >= -bound) index += bound;
  return Scalar::of_int(result, index >= 0 && index < bound ? index : 0);
}

// The seed's halves are mixed into the 32-bit key; the top 24 bits of the word make the number.
Scalar eval_random_uniform(DType result, Operands x) {
  auto seed = static_cast<uint64_t>(x[0].i);
  uint32_t key = static_cast<uint32_t>(seed) ^ (static_cast<uint32_t>(seed >> 32) * 0x85EBCA6Bu);
  uint32_t word = philox2x32(static_cast<uint64_t>(x[1].i), key);
  return Scalar::of(result, (word >> 8) * 0x1p-24);
}

}  // namespace kerf::ops
