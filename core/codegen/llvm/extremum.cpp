#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "codegen/llvm/emission.h"
#include "codegen/llvm/math.h"

// Minimum and maximum. LLVM's own maximum takes six instructions with AVX-512; vrangeps orders zeros as wanted and
// needs only NaN put back: three.

namespace kerf::codegen {

namespace {

Operand range_instruction(Emission& e, bool is_max, const Operand& a, const Operand& c) {
  std::string_view name = a.type.prim == Prim::f32 ? "ps" : "pd";
  constexpr int64_t kMin = 4, kMax = 5;  // the sign is that of the chosen operand
  return by_registers(e, {a, c}, [&](std::span<const Operand> x) {
    int bits = x[0].type.lanes * bit_width(x[0].type.prim);
    Prim mask = x[0].type.lanes == 16 ? Prim::i16 : Prim::i8;
    std::vector<Operand> arguments = {x[0], x[1], int_constant(Prim::i32, is_max ? kMax : kMin),
                                      zero_of(x[0].type), int_constant(mask, -1)};
    if (bits == 512) arguments.push_back(int_constant(Prim::i32, 4));  // exceptions as MXCSR says
    return e.b.call(x[0].type, fmt::format("llvm.x86.avx512.mask.range.{}.{}", name, bits), arguments,
                    "range");
  });
}

Operand extremum(Emission& e, bool is_max, DType dtype, Operand a, Operand c) {
  Builder& b = e.b;
  std::string hint = is_max ? "max" : "min";
  if (dtype == DType::b1) return b.binary(is_max ? "or" : "and", a, c, hint);
  if (!is_floating(dtype)) return b.intrinsic((is_signed(dtype) ? "s" : "u") + hint, {a, c}, hint);
  b.unify({&a, &c});
  if (!has_wide_registers(e, a.type)) return b.intrinsic(is_max ? "maximum" : "minimum", {a, c}, hint);
  Operand nan = real_constant(a.type.prim, std::numeric_limits<double>::quiet_NaN());
  return b.select(b.compare("fcmp uno", a, c), nan, range_instruction(e, is_max, a, c), hint);
}

}  // namespace

Operand emit_minimum(Emission& e, DType dtype, const Operand& a, const Operand& c) {
  return extremum(e, false, dtype, a, c);
}
Operand emit_maximum(Emission& e, DType dtype, const Operand& a, const Operand& c) {
  return extremum(e, true, dtype, a, c);
}

}  // namespace kerf::codegen
