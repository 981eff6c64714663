#include "codegen/llvm/math.h"

// The exponential family.

namespace kerf::codegen {

// e^x = 2^n e^r with n = round(x / ln 2) and |r| <= ln(2)/2. Beyond the clamps the result is inf or 0 anyway.
Operand math_exp(Emission& e, const Operand& x) {
  Builder& b = e.b;
  auto real = [](double v) { return real_constant(Prim::f32, v); };
  Operand low = b.select(b.compare("fcmp olt", x, real(-104.0f)), real(-104.0f), x, "exp.x");
  Operand clamped = b.select(b.compare("fcmp ogt", low, real(89.0f)), real(89.0f), low, "exp.x");
  Operand n = b.intrinsic("roundeven", {b.binary("fmul", clamped, real(0x1.715476p+0f), "exp.n")}, "exp.n");
  Operand r = b.intrinsic("fma", {n, real(-0x1.62e4p-1f), clamped}, "exp.r");
  r = b.intrinsic("fma", {n, real(-0x1.7f7d1cp-20f), r}, "exp.r");
  Operand p = horner(b, r, {1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0});
  return scale_by_power(e, p, n);
}

}  // namespace kerf::codegen
