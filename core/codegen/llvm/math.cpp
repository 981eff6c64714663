#include "codegen/llvm/math.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace kerf::codegen {

namespace {

struct Function {
  std::string_view name;
  Operand (*emit)(Emission&, std::span<const Operand>);
};

constexpr Function kFunctions[] = {
    {"exp", math_exp},         {"exp2", math_exp2}, {"expm1", math_expm1}, {"tanh", math_tanh},
    {"sigmoid", math_sigmoid}, {"log", math_log},   {"log2", math_log2},   {"log10", math_log10},
    {"log1p", math_log1p},     {"pow", math_pow},   {"erf", math_erf},     {"sin", math_sin},
    {"cos", math_cos},
};

// vscalefps computes x * 2^floor(n) with one rounding, over- and underflowing as it should.
Operand scale_with_hardware(Emission& e, const Operand& value, const Operand& n) {
  return by_registers(e, {value, n}, [&](std::span<const Operand> x) {
    int lanes = x[0].type.lanes;
    std::vector<Operand> arguments = {x[0], x[1], zero_of(x[0].type),
                                      int_constant(lanes == 16 ? Prim::i16 : Prim::i8, -1)};
    if (lanes == 16) arguments.push_back(int_constant(Prim::i32, 4));  // round as MXCSR says
    return e.b.call(x[0].type, fmt::format("llvm.x86.avx512.mask.scalef.ps.{}", 32 * lanes), arguments,
                    "scaled");
  });
}

}  // namespace

Operand emit_math(Emission& e, std::string_view name, std::string_view f64_symbol,
                  std::vector<Operand> arguments) {
  if (arguments[0].type.prim != Prim::f32) return call_per_lane(e, f64_symbol, std::move(arguments));
  const auto* function =
      std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](auto& f) { return f.name == name; });
  if (function == std::end(kFunctions))
    return call_per_lane(e, std::string(f64_symbol) + "f", std::move(arguments));
  e.b.comment(name);
  std::vector<Operand*> all;
  for (Operand& argument : arguments) all.push_back(&argument);
  e.b.unify(all);
  return function->emit(e, arguments);
}

bool has_wide_registers(const Emission& e, Type type) {
  return e.target.vector_bytes == 64 && type.lanes * bit_width(type.prim) >= 128;
}

Operand by_registers(Emission& e, std::vector<Operand> arguments,
                     const std::function<Operand(std::span<const Operand>)>& body) {
  Builder& b = e.b;
  int lanes = arguments[0].type.lanes;
  int piece = std::min(lanes, 512 / bit_width(arguments[0].type.prim));
  std::vector<Operand> pieces;
  for (int first = 0; first < lanes; first += piece) {
    std::vector<Operand> parts;
    for (const Operand& argument : arguments) parts.push_back(b.part(argument, first, piece));
    pieces.push_back(body(parts));
  }
  while (pieces.size() > 1) {
    std::vector<Operand> joined;
    for (size_t i = 0; i < pieces.size(); i += 2) {
      std::vector<int> all(2 * static_cast<size_t>(pieces[i].type.lanes));
      std::iota(all.begin(), all.end(), 0);
      joined.push_back(b.shuffle(pieces[i], pieces[i + 1], all, "joined"));
    }
    pieces = std::move(joined);
  }
  return pieces[0];
}

Operand horner(Builder& b, const Operand& x, std::initializer_list<double> coefficients) {
  Operand sum;
  for (double c : coefficients) {
    Operand coefficient = real_constant(x.type.prim, static_cast<float>(c));
    sum = sum.valid() ? b.intrinsic("fma", {sum, x, coefficient}, "p") : coefficient;
  }
  return sum;
}

Operand clamp(Builder& b, const Operand& x, double low, double high) {
  Operand l = real_constant(x.type.prim, low), h = real_constant(x.type.prim, high);
  Operand above = b.select(b.compare("fcmp olt", x, l), l, x, "clamped");
  return b.select(b.compare("fcmp ogt", above, h), h, above, "clamped");
}

// Subtracting the bits of sqrt(1/2) makes the exponent step there instead of at 1.
Split split_exponent(Emission& e, const Operand& x) {
  Builder& b = e.b;
  auto bits_of = [](int32_t v) { return int_constant(Prim::i32, v); };
  Operand tiny = b.compare("fcmp olt", x, real_constant(Prim::f32, 0x1p-126), "tiny");
  Operand scaled = b.binary("fmul", x, real_constant(Prim::f32, 0x1p24), "scaled");
  Operand bits = b.convert("bitcast", b.select(tiny, scaled, x, "normal"), Prim::i32, "bits");
  constexpr int32_t kSqrtHalf = 0x3f3504f3, kOne = 0x3f800000;
  Operand whole = b.binary("ashr", b.binary("sub", bits, bits_of(kSqrtHalf), "above"), bits_of(23), "k");
  Operand shifted = b.binary("shl", whole, bits_of(23), "k.bits");
  Operand mantissa = b.convert("bitcast", b.binary("sub", bits, shifted, "m.bits"), Prim::f32, "m");
  Operand k = b.convert("sitofp", whole, Prim::f32, "k");
  k = b.select(tiny, b.binary("fsub", k, real_constant(Prim::f32, 24), "k"), k, "k");
  Operand inverse =
      b.convert("bitcast", b.binary("sub", bits_of(kOne), shifted, "inverse"), Prim::f32, "inverse");
  return {mantissa, k, inverse};
}

Operand small_exp2(Builder& b, const Operand& r) {
  return horner(
      b, r, {0x1.417a36p-13, 0x1.5f0f74p-10, 0x1.3b2ddap-7, 0x1.c6af72p-5, 0x1.ebfbdcp-3, 0x1.62e430p-1, 1});
}

// The conversion instruction would do, but its LLVM form is undefined for NaN.
Operand power_of_two(Builder& b, const Operand& n) {
  Operand shifted = b.binary("fadd", n, real_constant(Prim::f32, kRounder), "shifted");
  Operand biased = b.binary("add", b.convert("bitcast", shifted, Prim::i32, "bits"),
                            int_constant(Prim::i32, 127), "biased");
  return b.convert("bitcast", b.binary("shl", biased, int_constant(Prim::i32, 23), "bits"), Prim::f32,
                   "power");
}

// Without vscalefps: two factors, each of which a normal float can hold, the larger magnitude first so that only the
// last product rounds.
Operand scale_by_power(Emission& e, const Operand& value, const Operand& n) {
  if (has_wide_registers(e, value.type)) return scale_with_hardware(e, value, n);
  Builder& b = e.b;
  Operand half = b.intrinsic("trunc", {b.binary("fmul", n, real_constant(Prim::f32, 0.5), "half")}, "half");
  Operand scaled = b.binary("fmul", value, power_of_two(b, half), "scaled");
  return b.binary("fmul", scaled, power_of_two(b, b.binary("fsub", n, half, "half")), "scaled");
}

}  // namespace kerf::codegen
