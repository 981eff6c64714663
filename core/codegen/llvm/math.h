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

// A polynomial by Horner's rule with fma, highest coefficient first.
Operand horner(Builder& b, const Operand& x, std::initializer_list<double> coefficients);

// value * 2^n for a whole n that may leave the range of normal numbers; n is an f32.
Operand scale_by_power(Emission& e, const Operand& value, const Operand& n);

// math_exp.cpp, math_log.cpp, ...: x is f32.
Operand math_exp(Emission& e, const Operand& x);

}  // namespace kerf::codegen
