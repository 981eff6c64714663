#include <limits>
#include <numbers>

#include "codegen/llvm/math.h"

// Logarithms and powers. x = m 2^k with m around 1 and f = m - 1: ln m = f - f^2/2 + f^3 P(f).

namespace kerf::codegen {

namespace {

Operand real(double v) { return real_constant(Prim::f32, v); }
const double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

// ln(1 + f) - f.
Operand tail_of_log(Builder& b, const Operand& f) {
  Operand p = horner(b, f,
                     {0x1.16a6d0p-4, -0x1.e02078p-4, 0x1.e6d192p-4, -0x1.fbbf40p-4, 0x1.23331ap-3,
                      -0x1.555fbep-3, 0x1.99a524p-3, -0x1.fffff8p-3, 0x1.555546p-2});
  Operand square = b.binary("fmul", f, f, "f2");
  Operand inner = b.intrinsic("fma", {p, f, real(-0.5)}, "inner");
  return b.binary("fmul", square, inner, "tail");
}

// The limits of all logarithms: inf and NaN are kept, 0 gives -inf, below is no number. `at` is where 0 lies.
Operand with_limits(Builder& b, const Operand& x, const Operand& result, double zero) {
  Operand finite = b.select(b.compare("fcmp olt", x, real(kInfinity)), result, x);
  Operand defined = b.select(b.compare("fcmp olt", x, real(zero)), real(kNaN), finite);
  return b.select(b.compare("fcmp oeq", x, real(zero)), real(-kInfinity), defined, "log");
}

// k ln 2 + f + tail, smallest first; ln 2 in two parts, the upper exact when multiplied by k.
Operand natural(Builder& b, const Operand& k, const Operand& f, const Operand& tail) {
  Operand low = b.intrinsic("fma", {k, real(-0x1.05c610p-29), tail}, "low");
  return b.intrinsic("fma", {k, real(0x1.62e430p-1), b.binary("fadd", low, f, "low")}, "sum");
}

}  // namespace

Operand math_log(Emission& e, std::span<const Operand> x) {
  Builder& b = e.b;
  Split split = split_exponent(e, x[0]);
  Operand f = b.binary("fsub", split.mantissa, real(1), "f");
  return with_limits(b, x[0], natural(b, split.exponent, f, tail_of_log(b, f)), 0);
}

// (f + tail) log2(e), with log2(e) = 1 + c so that the large part f is not rounded again.
Operand math_log2(Emission& e, std::span<const Operand> x) {
  Builder& b = e.b;
  Split split = split_exponent(e, x[0]);
  Operand f = b.binary("fsub", split.mantissa, real(1), "f");
  Operand tail = tail_of_log(b, f);
  Operand c = real(0x1.c551dap-2);
  Operand sum = b.intrinsic("fma", {tail, c, b.intrinsic("fma", {f, c, tail}, "sum")}, "sum");
  sum = b.binary("fadd", b.binary("fadd", sum, f, "sum"), split.exponent, "sum");
  return with_limits(b, x[0], sum, 0);
}

Operand math_log10(Emission& e, std::span<const Operand> x) {
  Builder& b = e.b;
  Split split = split_exponent(e, x[0]);
  Operand f = b.binary("fsub", split.mantissa, real(1), "f");
  Operand tail = tail_of_log(b, f);
  // log10(e) and log10(2) in two parts each.
  Operand sum = b.intrinsic(
      "fma", {split.exponent, real(0x1.3509f8p-18), b.binary("fmul", tail, real(0x1.6f62a4p-11))}, "sum");
  sum = b.intrinsic("fma", {f, real(0x1.6f62a4p-11), sum}, "sum");
  sum = b.intrinsic("fma", {tail, real(0x1.bcp-2), sum}, "sum");
  sum = b.intrinsic("fma", {f, real(0x1.bcp-2), sum}, "sum");
  return with_limits(b, x[0], b.intrinsic("fma", {split.exponent, real(0x1.344p-2), sum}, "sum"), 0);
}

// u = 1 + x loses bits of x; c holds them. Beyond 2^25 they do not matter, and 2^-k would leave its range.
Operand math_log1p(Emission& e, std::span<const Operand> x) {
  Builder& b = e.b;
  Operand u = b.binary("fadd", x[0], real(1), "u");
  Operand back = b.binary("fsub", u, real(1), "back");
  Operand lost_x = b.binary("fsub", x[0], back, "lost");
  Operand lost_one = b.binary("fsub", real(1), b.binary("fsub", u, back, "one"), "lost");
  Operand c = b.binary("fadd", lost_x, lost_one, "c");
  Split split = split_exponent(e, u);
  Operand correction = b.binary("fmul", c, split.inverse_power, "correction");
  correction = b.select(b.compare("fcmp olt", x[0], real(0x1p25)), correction, real(0));
  Operand f = b.binary("fadd", b.binary("fsub", split.mantissa, real(1), "f"), correction, "f");
  Operand result = with_limits(b, x[0], natural(b, split.exponent, f, tail_of_log(b, f)), -1);
  Operand tiny = b.compare("fcmp olt", b.intrinsic("fabs", {x[0]}), real(0x1p-25), "tiny");
  return b.select(tiny, x[0], result, "log1p");
}

namespace {

// log2 of a positive float in f64, to about 2^-38: with s = (m-1)/(m+1), ln m = 2 (s + s^3/3 + s^5/5 + ...).
Operand wide_log2(Emission& e, const Operand& x) {
  Builder& b = e.b;
  Split split = split_exponent(e, x);
  auto wide = [](double v) { return real_constant(Prim::f64, v); };
  Operand m = b.convert("fpext", split.mantissa, Prim::f64, "m");
  Operand s = b.binary("fdiv", b.binary("fsub", m, wide(1)), b.binary("fadd", m, wide(1)), "s");
  Operand z = b.binary("fmul", s, s, "z");
  Operand p = wide(2 * std::numbers::log2e / 15);
  for (int n : {13, 11, 9, 7, 5, 3, 1})
    p = b.intrinsic("fma", {p, z, wide(2 * std::numbers::log2e / n)}, "p");
  Operand k = b.convert("fpext", split.exponent, Prim::f64, "k");
  Operand result = b.intrinsic("fma", {s, p, k}, "log2");
  // Zero and inf have no m and k.
  Operand infinite = b.compare("fcmp oeq", x, real(kInfinity));
  result = b.select(infinite, wide(kInfinity), result);
  result = b.select(b.compare("fcmp uno", x, x), wide(kNaN), result);
  return b.select(b.compare("fcmp oeq", x, real(0)), wide(-kInfinity), result, "log2");
}

// 2^w for f64 w, to f32.
Operand exp2_of_wide(Emission& e, const Operand& w) {
  Builder& b = e.b;
  Operand clamped = clamp(b, w, -152, 130);
  Operand n = b.intrinsic("roundeven", {clamped}, "n");
  Operand r = b.convert("fptrunc", b.binary("fsub", clamped, n, "r"), Prim::f32, "r");
  return scale_by_power(e, small_exp2(b, r), b.convert("fptrunc", n, Prim::f32, "n"));
}

}  // namespace

// |x|^y = 2^(y log2 |x|), then the sign and the cases of IEEE 754's pow.
Operand math_pow(Emission& e, std::span<const Operand> arguments) {
  Builder& b = e.b;
  const Operand &x = arguments[0], &y = arguments[1];
  Operand size = b.intrinsic("fabs", {x});
  Operand w = b.binary("fmul", b.convert("fpext", y, Prim::f64, "y"), wide_log2(e, size), "w");
  Operand result = exp2_of_wide(e, w);
  // 1^inf is 1, and so is (-1)^inf.
  Operand one = b.binary("and", b.compare("fcmp oeq", size, real(1)), b.compare("fcmp ord", y, y), "one");
  result = b.select(one, real(1), result);

  Operand whole = b.compare("fcmp oeq", b.intrinsic("trunc", {y}), y, "whole");
  Operand half = b.binary("fmul", y, real(0.5), "half");
  Operand odd = b.binary("and", whole, b.compare("fcmp une", b.intrinsic("trunc", {half}), half), "odd");
  Operand sign =
      b.compare("icmp slt", b.convert("bitcast", x, Prim::i32, "bits"), int_constant(Prim::i32, 0), "sign");
  result = b.select(b.binary("and", sign, odd), b.unary("fneg", result), result);
  Operand finite_negative =
      b.binary("and", b.compare("fcmp olt", x, real(0)), b.compare("fcmp olt", size, real(kInfinity)));
  Operand fraction = b.binary("xor", whole, int_constant(Prim::i1, 1), "fraction");
  result = b.select(b.binary("and", finite_negative, fraction), real(kNaN), result);
  Operand trivial =
      b.binary("or", b.compare("fcmp oeq", x, real(1)), b.compare("fcmp oeq", y, real(0)), "trivial");
  return b.select(trivial, real(1), result, "pow");
}

}  // namespace kerf::codegen
