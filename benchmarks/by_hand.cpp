#include "by_hand.h"

#include <immintrin.h>

#include <cmath>

namespace kerf::by_hand {

namespace {

constexpr int64_t kRow = 1024;

__m512 real(float v) { return _mm512_set1_ps(v); }

template <class... Rest>
__m512 horner(__m512 x, float first, Rest... rest) {
  __m512 sum = real(first);
  ((sum = _mm512_fmadd_ps(sum, x, real(rest))), ...);
  return sum;
}

__m512 exp(__m512 x) {
  // A clamp that keeps NaN: the comparison is false, and x stays.
  x = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, real(-104), _CMP_LT_OQ), real(-104));
  x = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, real(89), _CMP_GT_OQ), real(89));
  __m512 rounder = real(0x1.8p23f);
  __m512 n = _mm512_sub_ps(_mm512_fmadd_ps(x, real(0x1.715476p+0f), rounder), rounder);
  __m512 r = _mm512_fmadd_ps(n, real(-0x1.62e400p-1f), x);
  r = _mm512_fmadd_ps(n, real(-0x1.7f7d1cp-20f), r);
  __m512 q = horner(r, 0x1.6a4da6p-10f, 0x1.123e5ap-7f, 0x1.5558b8p-5f, 0x1.55548cp-3f, 0x1.fffffcp-2f);
  __m512 t = _mm512_fmadd_ps(_mm512_mul_ps(r, r), q, r);
  return _mm512_scalef_ps(_mm512_add_ps(t, real(1)), n);
}

__m512 copysign(__m512 size, __m512 sign) { return _mm512_or_ps(size, _mm512_and_ps(sign, real(-0.0f))); }

__m512 erf(__m512 x) {
  __m512 small = horner(_mm512_mul_ps(x, x), 0x1.4f6760p-14f, -0x1.a60a2ep-11f, 0x1.544a1ap-8f,
                        -0x1.b8011ap-6f, 0x1.ce2d64p-4f, -0x1.812740p-2f, 0x1.06eba8p-3f);
  small = _mm512_fmadd_ps(small, x, x);
  __m512 size = _mm512_abs_ps(x);
  __m512 t = _mm512_mask_mov_ps(size, _mm512_cmp_ps_mask(size, real(4.125f), _CMP_GT_OQ), real(4.125f));
  __m512 exponent = horner(t, -0x1.78d110p-17f, 0x1.52795cp-12f, -0x1.dd6ba8p-9f, 0x1.855122p-6f,
                           -0x1.b32568p-4f, -0x1.45328ep-1f, -0x1.0778dcp-3f);
  __m512 rest = exp(_mm512_fmsub_ps(exponent, t, t));
  __m512 large = copysign(_mm512_sub_ps(real(1), rest), x);
  return _mm512_mask_mov_ps(small, _mm512_cmp_ps_mask(size, real(0.927734375f), _CMP_GT_OQ), large);
}

__m512 gelu(__m512 x) {
  __m512 grown = _mm512_add_ps(erf(_mm512_mul_ps(x, real(0.70710678f))), real(1));
  return _mm512_mul_ps(_mm512_mul_ps(x, real(0.5f)), grown);
}

// philox2x32-10 of eight counters, of which the upper 24 bits of the first word become a number in [0, 1).
__m256 uniform(__m512i first, uint32_t seed) {
  const __m512i multiplier = _mm512_set1_epi64(0xD256D193);
  uint32_t key = seed;
  __m512i second = _mm512_srli_epi64(first, 32);
  for (int round = 0; round < 10; ++round) {
    __m512i product = _mm512_mul_epu32(first, multiplier);
    first =
        _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(product, 32), _mm512_set1_epi64(key)), second);
    second = _mm512_and_si512(product, _mm512_set1_epi64(0xffffffff));
    key += 0x9E3779B9;
  }
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm512_cvtepi64_epi32(_mm512_srli_epi64(first, 8))),
                       _mm256_set1_ps(0x1p-24f));
}

}  // namespace

bool is_supported() { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"); }

void gelu(const float* x, float* y, int64_t rows) {
  for (int64_t i = 0; i < rows * kRow; i += 16) {
    _mm_prefetch(reinterpret_cast<const char*>(x + i + kRow), _MM_HINT_T0);
    _mm512_storeu_ps(y + i, gelu(_mm512_loadu_ps(x + i)));
  }
}

void gelu_dropout(const float* x, float* y, int64_t rows) {
  const __m512i lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  for (int64_t i = 0; i < rows * kRow; i += 16) {
    _mm_prefetch(reinterpret_cast<const char*>(x + i + kRow), _MM_HINT_T0);
    __m256 low = uniform(_mm512_add_epi64(_mm512_set1_epi64(i), lanes), 7);
    __m256 high = uniform(_mm512_add_epi64(_mm512_set1_epi64(i + 8), lanes), 7);
    __m512 drawn = _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
    __m512 kept = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(drawn, real(0.9f), _CMP_LT_OQ), real(1));
    __m512 value = _mm512_mul_ps(gelu(_mm512_loadu_ps(x + i)), kept);
    _mm512_storeu_ps(y + i, _mm512_mul_ps(value, real(1.1111112f)));
  }
}

void log_sum_exp(const float* x, float* y, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, x += kRow) {
    __m512 most[4] = {real(-INFINITY), real(-INFINITY), real(-INFINITY), real(-INFINITY)};
    for (int64_t i = 0; i < kRow; i += 64)
      for (int k = 0; k < 4; ++k) {
        _mm_prefetch(reinterpret_cast<const char*>(x + i + 16 * k + kRow), _MM_HINT_T0);
        // NaN where either is: the range instruction alone would lose it.
        __m512 v = _mm512_loadu_ps(x + i + 16 * k), larger = _mm512_range_ps(most[k], v, 5);
        most[k] = _mm512_mask_add_ps(larger, _mm512_cmp_ps_mask(most[k], v, _CMP_UNORD_Q), most[k], v);
      }
    __m512 pair = _mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3]));
    float largest = _mm512_reduce_max_ps(pair);
    __m512 sum = real(0), other = real(0);
    for (int64_t i = 0; i < kRow; i += 32) {
      sum = _mm512_add_ps(sum, exp(_mm512_sub_ps(_mm512_loadu_ps(x + i), real(largest))));
      other = _mm512_add_ps(other, exp(_mm512_sub_ps(_mm512_loadu_ps(x + i + 16), real(largest))));
    }
    y[r] = largest + _mm512_reduce_add_ps(_mm512_add_ps(sum, other));
  }
}

}  // namespace kerf::by_hand
