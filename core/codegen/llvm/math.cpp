#include "codegen/llvm/math.h"

#include <fmt/format.h>

#include <algorithm>

namespace kerf::codegen {

namespace {

struct Function {
  std::string_view name;
  Operand (*emit)(Emission&, const Operand&);
};

constexpr Function kFunctions[] = {
    {"exp", math_exp},
};

// vscalefps computes x * 2^floor(n) with one rounding, over- and underflowing as it should.
Operand scale_with_hardware(Emission& e, const Operand& value, const Operand& n) {
  Builder& b = e.b;
  int lanes = value.type.lanes;
  int piece = std::min(lanes, 16);
  std::string symbol = fmt::format("llvm.x86.avx512.mask.scalef.ps.{}", 32 * piece);
  std::vector<Operand> pieces;
  for (int first = 0; first < lanes; first += piece) {
    Operand low = b.part(value, first, piece), power = b.part(n, first, piece);
    std::vector<Operand> arguments = {low, power, zero_of(low.type),
                                      int_constant(piece == 16 ? Prim::i16 : Prim::i8, -1)};
    if (piece == 16) arguments.push_back(int_constant(Prim::i32, 4));  // round as MXCSR says
    pieces.push_back(b.call(low.type, symbol, arguments, "scaled"));
  }
  while (pieces.size() > 1) {
    std::vector<Operand> joined;
    for (size_t i = 0; i < pieces.size(); i += 2) {
      std::vector<int> all(2 * pieces[i].type.lanes);
      for (size_t lane = 0; lane < all.size(); ++lane) all[lane] = static_cast<int>(lane);
      joined.push_back(b.shuffle(pieces[i], pieces[i + 1], all, "scaled"));
    }
    pieces = std::move(joined);
  }
  return pieces[0];
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
  return function->emit(e, arguments[0]);
}

Operand horner(Builder& b, const Operand& x, std::initializer_list<double> coefficients) {
  Operand sum;
  for (double c : coefficients) {
    Operand coefficient = real_constant(x.type.prim, static_cast<float>(c));
    sum = sum.valid() ? b.intrinsic("fma", {sum, x, coefficient}, "p") : coefficient;
  }
  return sum;
}

// Without vscalefps: 2^n as two factors, each of which a normal float can hold. n lies in [-252, 254].
Operand scale_by_power(Emission& e, const Operand& value, const Operand& n) {
  bool scalef = e.target.vector_bytes == 64 && value.type.lanes >= 4;
  if (scalef) return scale_with_hardware(e, value, n);
  Builder& b = e.b;
  Operand whole = b.convert("fptosi", n, Prim::i32, "whole");
  Operand half = b.binary("ashr", whole, int_constant(Prim::i32, 1), "half");
  Operand result = value;
  for (const Operand& part : {half, b.binary("sub", whole, half, "half")}) {
    Operand biased = b.binary("add", part, int_constant(Prim::i32, 127), "biased");
    Operand power = b.convert("bitcast", b.binary("shl", biased, int_constant(Prim::i32, 23), "bits"),
                              Prim::f32, "power");
    result = b.binary("fmul", result, power, "scaled");
  }
  return result;
}

}  // namespace kerf::codegen
