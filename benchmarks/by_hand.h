#pragma once
// The loops that cpu_kernels compiles, as one would write them with AVX-512 intrinsics: the same formulas and polynomials
// (core/codegen/llvm/math_*.cpp), so that the ratio shows what code generation leaves. Rows of 1024 floats.
#include <cstdint>

namespace kerf::by_hand {

bool is_supported();  // the processor has AVX-512 F and DQ

using Rows = void (*)(const float* x, float* y, int64_t rows);
void gelu(const float* x, float* y, int64_t rows);          // x / 2 * (1 + erf(x / sqrt 2))
void gelu_dropout(const float* x, float* y, int64_t rows);  // the same, kept with probability 0.9, by 0.9
void log_sum_exp(const float* x, float* y, int64_t rows);   // one result a row: log of the sum is left out

}  // namespace kerf::by_hand
