#include "codegen/llvm/math.h"

// The exponential family. Coefficients are minimax fits on the reduced range, rounded to f32 from the lowest up.

namespace kerf::codegen {

namespace {

Operand real(double v) { return real_constant(Prim::f32, v); }

struct Reduced {
  Operand n;  // whole, as f32
  Operand r;  // x = n ln 2 + r, |r| <= ln(2)/2
};

// ln 2 in two parts; the upper has trailing zeros, so that n * upper is exact.
Reduced reduce(Builder& b, const Operand& x) {
  Operand shifted = b.intrinsic("fma", {x, real(0x1.715476p+0), real(kRounder)}, "shifted");
  Operand n = b.binary("fsub", shifted, real(kRounder), "n");
  Operand r = b.intrinsic("fma", {n, real(-0x1.62e400p-1), x}, "r");
  return {n, b.intrinsic("fma", {n, real(-0x1.7f7d1cp-20), r}, "r")};
}

// e^r - 1 = r + r^2 q(r).
Operand small_expm1(Builder& b, const Operand& r) {
  Operand q = horner(b, r, {0x1.6ba480p-10, 0x1.122a70p-7, 0x1.5556f0p-5, 0x1.5554aep-3, 0x1.fffffep-2});
  return b.intrinsic("fma", {b.binary("fmul", r, r, "r2"), q, r}, "t");
}

}  // namespace

// e^x = 2^n e^r. Beyond the clamps the result is 0 or inf anyway.
Operand math_exp(Emission& e, std::span<const Operand> x) {
  Builder& b = e.b;
  Reduced reduced = reduce(b, clamp(b, x[0], -104, 89));
  const Operand& r = reduced.r;
  Operand q = horner(b, r, {0x1.6a4da6p-10, 0x1.123e5ap-7, 0x1.5558b8p-5, 0x1.55548cp-3, 0x1.fffffcp-2});
  Operand t = b.intrinsic("fma", {b.binary("fmul", r, r, "r2"), q, r}, "t");
  return scale_by_power(e, b.binary("fadd", t, real(1), "p"), reduced.n);
}

Operand math_exp2(Emission& e, std::span<const Operand> x) {
  Builder& b = e.b;
  Operand clamped = clamp(b, x[0], -151, 129);
  Operand n = b.intrinsic("roundeven", {clamped}, "n");
  return scale_by_power(e, small_exp2(b, b.binary("fsub", clamped, n, "r")), n);
}

// e^x - 1 = 2^n t + (2^n - 1), with one factor 2 taken out so that 2^128 is not needed.
Operand math_expm1(Emission& e, std::span<const Operand> x) {
  Builder& b = e.b;
  Reduced reduced = reduce(b, clamp(b, x[0], -18, 89));
  Operand t = small_expm1(b, reduced.r);
  Operand half = power_of_two(b, b.binary("fsub", reduced.n, real(1), "n"));
  Operand result = b.intrinsic("fma", {half, t, b.binary("fsub", half, real(0.5), "rest")}, "half");
  result = b.binary("fadd", result, result, "expm1");
  // Tiny arguments are their own result; here -0.0 keeps its sign and subnormals their bits.
  Operand tiny = b.compare("fcmp olt", b.intrinsic("fabs", {x[0]}), real(0x1p-25), "tiny");
  return b.select(tiny, x[0], result, "expm1");
}

// With E = e^2|x| - 1, tanh |x| = E / (E + 2): no cancellation for small x, exactly 1 for large.
Operand math_tanh(Emission& e, std::span<const Operand> x) {
  Builder& b = e.b;
  Operand size = b.intrinsic("fabs", {x[0]});
  Operand twice = b.binary("fadd", size, size, "twice");
  Operand bounded = b.select(b.compare("fcmp ogt", twice, real(40)), real(40), twice, "bounded");
  Reduced reduced = reduce(b, bounded);
  Operand power = power_of_two(b, reduced.n);
  Operand grown = b.intrinsic(
      "fma", {power, small_expm1(b, reduced.r), b.binary("fsub", power, real(1), "rest")}, "grown");
  Operand ratio = b.binary("fdiv", grown, b.binary("fadd", grown, real(2)), "ratio");
  return b.intrinsic("copysign", {ratio, x[0]}, "tanh");
}

Operand math_sigmoid(Emission& e, std::span<const Operand> x) {
  Builder& b = e.b;
  Operand negative = b.unary("fneg", x[0]);
  Operand growth = math_exp(e, std::span(&negative, 1));
  return b.binary("fdiv", real(1), b.binary("fadd", growth, real(1)), "sigmoid");
}

}  // namespace kerf::codegen
