#include <limits>

#include "codegen/llvm/emission.h"

// Casts, as convert() of base/dtype.h: narrow floats go through f32, floats become integers by truncation with the
// x86 answer out of range.

namespace kerf::codegen {

namespace {

// Round to nearest even on the bits. The hardware's conversion (vcvtneps2bf16) flushes subnormals to zero, so it is
// not used.
Operand round_to_bf16(Emission& e, const Operand& x) {
  Builder& b = e.b;
  auto constant = [](int64_t v) { return int_constant(Prim::i32, v); };
  Operand word = b.convert("bitcast", x, Prim::i32, "word");
  Operand upper = b.binary("lshr", word, constant(16), "upper");
  Operand bias = b.binary("add", b.binary("and", upper, constant(1), "odd"), constant(0x7fff), "bias");
  Operand rounded = b.binary("lshr", b.binary("add", word, bias, "rounded"), constant(16), "rounded");
  Operand quiet = b.binary("or", upper, constant(0x40), "quiet");
  Operand result = b.select(b.compare("fcmp uno", x, x, "nan"), quiet, rounded, "bf16");
  return b.convert("trunc", result, Prim::i16, "bf16");
}

// Out of range and NaN give the minimum of 32 or 64 bits; narrower types take the low bits of 32.
Operand real_to_integer(Emission& e, const Operand& x, DType to) {
  Builder& b = e.b;
  Prim prim = to == DType::i64 ? Prim::i64 : Prim::i32;
  bool wide = prim == Prim::i64;
  // Truncation keeps values down to, but not including, -2^31 - 1 in range; in f32 the next value is far below.
  double low = wide ? -0x1p63 : x.type.prim == Prim::f64 ? -0x1p31 - 1 : -0x1p31;
  std::string_view above = !wide && x.type.prim == Prim::f64 ? "fcmp ogt" : "fcmp oge";
  Operand inside =
      b.binary("and", b.compare(above, x, real_constant(x.type.prim, low)),
               b.compare("fcmp olt", x, real_constant(x.type.prim, wide ? 0x1p63 : 0x1p31)), "inside");
  Operand safe = b.select(inside, x, real_constant(x.type.prim, 0), "safe");
  int64_t minimum = wide ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min();
  Operand result = b.select(inside, b.convert("fptosi", safe, prim), int_constant(prim, minimum), "whole");
  Prim target = value_prim(to);
  return target == prim ? result : b.convert("trunc", result, target);
}

Operand integer_to(Emission& e, DType from, const Operand& x, DType to) {
  Builder& b = e.b;
  if (to == DType::b1) return from == DType::b1 ? x : b.compare("icmp ne", x, zero_of(x.type), "cast");
  if (is_floating(to)) {
    Operand real =
        b.convert(is_signed(from) ? "sitofp" : "uitofp", x, to == DType::f64 ? Prim::f64 : Prim::f32, "cast");
    return is_narrow(to) ? narrow(e, to, real) : real;
  }
  int from_bits = bit_width(x.type.prim), to_bits = bit_width(value_prim(to));
  if (from_bits == to_bits) return x;
  std::string_view op = from_bits > to_bits ? "trunc" : is_signed(from) ? "sext" : "zext";
  return b.convert(op, x, value_prim(to), "cast");
}

// LLVM looks through what it knows to be widened, compares narrow values, and then takes x < 0 ? 0 : x for a maximum of any
// zero: -0.0 became 0.0 (seen with LLVM 19). The fence is no instruction.
Operand widened_half(Emission& e, const Operand& x) {
  return e.b.intrinsic("arithmetic.fence", {e.b.convert("fpext", x, Prim::f32, "wide")}, "wide");
}

}  // namespace

bool is_narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

Operand widen(Emission& e, DType from, const Operand& bits) {
  if (from == DType::f16) {
    return widened_half(e, e.b.convert("bitcast", bits, Prim::half, "half"));
  }
  Operand word = e.b.convert("zext", bits, Prim::i32, "word");
  return e.b.convert("bitcast", e.b.binary("shl", word, int_constant(Prim::i32, 16), "word"), Prim::f32,
                     "wide");
}

Operand narrow(Emission& e, DType to, const Operand& x) {
  if (to == DType::bf16) return round_to_bf16(e, x);
  return e.b.convert("bitcast", e.b.convert("fptrunc", x, Prim::half, "half"), Prim::i16, "f16");
}

Operand emit_cast(Emission& e, const Application& a) {
  Builder& b = e.b;
  if (a.operand_type == a.type) return a.x[0];
  if (!is_floating(a.operand_type)) return integer_to(e, a.operand_type, a.x[0], a.type);
  Operand x = is_narrow(a.operand_type) ? widen(e, a.operand_type, a.x[0]) : a.x[0];
  if (a.type == DType::b1) return b.compare("fcmp une", x, zero_of(x.type), "cast");
  if (!is_floating(a.type)) return real_to_integer(e, x, a.type);
  if (a.type == DType::f64) return x.type.prim == Prim::f64 ? x : b.convert("fpext", x, Prim::f64, "cast");
  Operand single = x.type.prim == Prim::f64 ? b.convert("fptrunc", x, Prim::f32, "cast") : x;
  return is_narrow(a.type) ? narrow(e, a.type, single) : single;
}

}  // namespace kerf::codegen
