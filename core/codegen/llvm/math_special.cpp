#include "codegen/llvm/math.h"

// The error function and trigonometry.

namespace kerf::codegen {

namespace {

Operand real(double v) { return real_constant(Prim::f32, v); }

// Beyond this the three parts of pi/2 no longer give an exact enough remainder.
constexpr double kLargestReduced = 65536;

struct Quadrant {
  Operand n;  // i32
  Operand r;  // x = n pi/2 + r, |r| <= pi/4
};

Quadrant reduce(Builder& b, const Operand& x) {
  Operand n = b.intrinsic("roundeven", {b.binary("fmul", x, real(0x1.45f306p-1), "n")}, "n");
  Operand r = b.intrinsic("fma", {n, real(-0x1.921fb6p+0), x}, "r");
  r = b.intrinsic("fma", {n, real(0x1.777a5cp-25), r}, "r");
  r = b.intrinsic("fma", {n, real(0x1.ee59dap-50), r}, "r");
  return {b.convert("fptosi", n, Prim::i32, "quadrant"), r};
}

// sin(x + shift pi/2) for moderate x. The reduction loses the sign of a zero.
Operand sine(Builder& b, const Operand& x, int shift) {
  Quadrant q = reduce(b, x);
  Operand square = b.binary("fmul", q.r, q.r, "r2");
  Operand s = horner(b, square, {0x1.7b5ae0p-19, -0x1.a056a6p-13, 0x1.111172p-7, -0x1.555556p-3});
  Operand sin = b.intrinsic("fma", {b.binary("fmul", square, q.r, "r3"), s, q.r}, "sin");
  Operand c = horner(b, square, {-0x1.34e50ap-22, 0x1.a06d46p-16, -0x1.6c175ap-10, 0x1.555556p-5, -0.5, 1});
  Operand n = shift ? b.binary("add", q.n, int_constant(Prim::i32, shift), "quadrant") : q.n;
  auto bit = [&](int mask) {
    Operand kept = b.binary("and", n, int_constant(Prim::i32, mask), "bit");
    return b.compare("icmp ne", kept, int_constant(Prim::i32, 0), "bit");
  };
  Operand chosen = b.select(bit(1), c, sin, "chosen");
  Operand result = b.select(bit(2), b.unary("fneg", chosen), chosen, shift ? "cos" : "sin");
  return shift ? result : b.select(b.compare("fcmp oeq", x, real(0)), x, result, "sin");
}

// Large arguments are rare: when a lane holds one (or inf), libm computes the whole vector.
Operand trigonometric(Emission& e, const Operand& x, int shift) {
  Builder& b = e.b;
  Operand large = b.compare("fcmp ogt", b.intrinsic("fabs", {x}), real(kLargestReduced), "large");
  // fptosi of a large or missing number is undefined, so those lanes compute with 0.
  Operand moderate = b.compare("fcmp ole", b.intrinsic("fabs", {x}), real(kLargestReduced), "moderate");
  Operand safe = b.select(moderate, x, real(0), "safe");
  Operand fast = b.select(moderate, sine(b, safe, shift), b.binary("fsub", x, x, "nan"), "fast");
  Operand active = large;
  if (e.mask.valid() && large.type.is_vector()) active = b.binary("and", large, e.mask, "large");
  return when(e, any_lane(e, active), fast, [&] { return call_per_lane(e, shift ? "cosf" : "sinf", {x}); });
}

}  // namespace

// Two ranges: a polynomial in x^2 for small x, and 1 - e^(t R(t) - t) for t = |x| from 0.93, which rounds to 1 where
// erf does.
Operand math_erf(Emission& e, std::span<const Operand> arguments) {
  Builder& b = e.b;
  const Operand& x = arguments[0];
  Operand square = b.binary("fmul", x, x, "x2");
  Operand small = horner(b, square,
                         {0x1.4f6760p-14, -0x1.a60a2ep-11, 0x1.544a1ap-8, -0x1.b8011ap-6, 0x1.ce2d64p-4,
                          -0x1.812740p-2, 0x1.06eba8p-3});
  small = b.intrinsic("fma", {small, x, x}, "small");
  Operand size = b.intrinsic("fabs", {x});
  Operand t = b.select(b.compare("fcmp ogt", size, real(4.125)), real(4.125), size, "t");
  Operand exponent = horner(b, t,
                            {-0x1.78d110p-17, 0x1.52795cp-12, -0x1.dd6ba8p-9, 0x1.855122p-6, -0x1.b32568p-4,
                             -0x1.45328ep-1, -0x1.0778dcp-3});
  exponent = b.intrinsic("fma", {exponent, t, b.unary("fneg", t)}, "exponent");
  Operand rest = math_exp(e, std::span(&exponent, 1));
  Operand large = b.intrinsic("copysign", {b.binary("fsub", real(1), rest), x}, "large");
  return b.select(b.compare("fcmp ogt", size, real(0.927734375)), large, small, "erf");
}

Operand math_sin(Emission& e, std::span<const Operand> x) { return trigonometric(e, x[0], 0); }
Operand math_cos(Emission& e, std::span<const Operand> x) { return trigonometric(e, x[0], 1); }

}  // namespace kerf::codegen
