#pragma once
// Elementary functions: polynomials of our own for f32, on scalars and vectors alike; f64 goes through libm by lane.
//
// Contract: right at infinities, NaN, -0.0 and for subnormal arguments and results. The largest errors measured over
// all floats stand in the rows of ops/scalar_ops.def. Only fma, no reassociation: the text is the algorithm.
#include <string_view>
#include <vector>

#include "codegen/llvm/emission.h"

namespace kerf::codegen {

// The f32 polynomial called `name`, or the libm function `f64_symbol` for f64.
Operand emit_math(Emission& e, std::string_view name, std::string_view f64_symbol,
                  std::vector<Operand> arguments);

// Whether AVX-512 instructions without an LLVM form of their own can be had for vectors of this type.
bool has_wide_registers(const Emission& e, Type type);

// Runs `body` on pieces of at most 512 bits of its arguments and joins what it gives, for such instructions.
Operand by_registers(Emission& e, std::vector<Operand> arguments,
                     const std::function<Operand(std::span<const Operand>)>& body);

// A polynomial by Horner's rule with fma, highest coefficient first.
Operand horner(Builder& b, const Operand& x, std::initializer_list<double> coefficients);

// Adding and subtracting this rounds an f32 below 2^22 to a whole number, whose bits then end the sum's mantissa.
inline constexpr double kRounder = 0x1.8p23;

// 2^n for a whole f32 n in [-126, 127]. NaN gives some number.
Operand power_of_two(Builder& b, const Operand& n);

// value * 2^n, rounded once, for a whole f32 n in [-252, 254]; 2^n alone need not be a float. NaN gives NaN where
// the value is NaN.
Operand scale_by_power(Emission& e, const Operand& value, const Operand& n);

// 2^r for |r| <= 1/2.
Operand small_exp2(Builder& b, const Operand& r);

// The argument brought into [low, high]; NaN stays.
Operand clamp(Builder& b, const Operand& x, double low, double high);

// m and k with x = m * 2^k and m in [sqrt(1/2), sqrt(2)); k is an f32. x is positive and finite, else they are
// meaningless.
struct Split {
  Operand mantissa;
  Operand exponent;
  Operand inverse_power;  // 2^-k, right for k in [-126, 126]
};
Split split_exponent(Emission& e, const Operand& x);

// All arguments and results are f32. math_exp.cpp:
Operand math_exp(Emission& e, std::span<const Operand> x);
Operand math_exp2(Emission& e, std::span<const Operand> x);
Operand math_expm1(Emission& e, std::span<const Operand> x);
Operand math_tanh(Emission& e, std::span<const Operand> x);
Operand math_sigmoid(Emission& e, std::span<const Operand> x);
// math_log.cpp:
Operand math_log(Emission& e, std::span<const Operand> x);
Operand math_log2(Emission& e, std::span<const Operand> x);
Operand math_log10(Emission& e, std::span<const Operand> x);
Operand math_log1p(Emission& e, std::span<const Operand> x);
Operand math_pow(Emission& e, std::span<const Operand> x);
// math_special.cpp:
Operand math_erf(Emission& e, std::span<const Operand> x);
Operand math_sin(Emission& e, std::span<const Operand> x);
Operand math_cos(Emission& e, std::span<const Operand> x);

}  // namespace kerf::codegen
