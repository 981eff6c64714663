#include <fmt/format.h>

#include <algorithm>

#include "codegen/llvm/emission.h"
#include "codegen/llvm/math.h"

// Scalar operations. The row's form says how; operations with a form of their own are in kCustom.

namespace kerf::codegen {

using ops::ScalarOp;

namespace {

using CustomForm = Operand (*)(Emission&, const Application&);

bool floating(const Application& a) { return is_floating(a.operand_type); }

Operand real(const Operand& like, double value) { return real_constant(like.type.prim, value); }

Operand emit_neg(Emission& e, const Application& a) {
  if (floating(a)) return e.b.unary("fneg", a.x[0]);
  return e.b.binary("sub", zero_of(a.x[0].type), a.x[0], "neg");
}

Operand emit_abs(Emission& e, const Application& a) {
  if (floating(a)) return e.b.intrinsic("fabs", {a.x[0]});
  if (!is_signed(a.operand_type)) return a.x[0];
  Operand arguments[] = {a.x[0], int_constant(Prim::i1, 0)};
  return e.b.call(a.x[0].type, "llvm.abs." + suffix(a.x[0].type), arguments, "abs");
}

Operand emit_sign(Emission& e, const Application& a) {
  const Operand& x = a.x[0];
  Prim prim = x.type.prim;
  if (floating(a)) {
    Operand negative = e.b.select(e.b.compare("fcmp olt", x, zero_of(x.type)), real(x, -1), real(x, 0));
    return e.b.select(e.b.compare("fcmp ogt", x, zero_of(x.type)), real(x, 1), negative, "sign");
  }
  Operand one = int_constant(prim, 1), zero = int_constant(prim, 0);
  Operand negative = zero;
  if (is_signed(a.operand_type)) {
    negative = e.b.select(e.b.compare("icmp slt", x, zero_of(x.type)), int_constant(prim, -1), zero);
  }
  std::string greater = is_signed(a.operand_type) ? "icmp sgt" : "icmp ugt";
  return e.b.select(e.b.compare(greater, x, zero_of(x.type)), one, negative, "sign");
}

Operand emit_extremum(Emission& e, const Application& a) {
  bool is_max = a.op == ScalarOp::maximum || a.op == ScalarOp::fmax;
  return is_max ? emit_maximum(e, a.operand_type, a.x[0], a.x[1])
                : emit_minimum(e, a.operand_type, a.x[0], a.x[1]);
}

// The other operand where one is NaN.
Operand emit_number_extremum(Emission& e, const Application& a) {
  Operand both = emit_extremum(e, a);
  if (!floating(a)) return both;
  Operand second_nan = e.b.compare("fcmp uno", a.x[1], a.x[1], "nan");
  Operand result = e.b.select(second_nan, a.x[0], both);
  return e.b.select(e.b.compare("fcmp uno", a.x[0], a.x[0], "nan"), a.x[1], result);
}

Operand emit_not(Emission& e, const Application& a) {
  return e.b.binary("xor", a.x[0], int_constant(a.x[0].type.prim, a.operand_type == DType::b1 ? 1 : -1),
                    "not");
}

// Counts outside the width are undefined in LLVM: shift by a safe count and select.
Operand emit_shift(Emission& e, const Application& a) {
  Prim prim = a.x[0].type.prim;
  int width = bit_width(prim);
  Operand inside = e.b.compare("icmp ult", a.x[1], int_constant(prim, width), "inside");
  if (a.op == ScalarOp::shift_right && is_signed(a.operand_type)) {
    Operand count = e.b.select(inside, a.x[1], int_constant(prim, width - 1), "count");
    return e.b.binary("ashr", a.x[0], count);
  }
  Operand zero = int_constant(prim, 0);
  Operand count = e.b.select(inside, a.x[1], zero, "count");
  Operand shifted = e.b.binary(a.op == ScalarOp::shift_left ? "shl" : "lshr", a.x[0], count);
  return e.b.select(inside, shifted, zero);
}

Operand emit_compare(Emission& e, const Application& a) {
  struct Predicates {
    ScalarOp op;
    std::string_view real, with_sign, without;
  };
  static constexpr Predicates kTable[] = {
      {ScalarOp::eq, "fcmp oeq", "icmp eq", "icmp eq"},   {ScalarOp::ne, "fcmp une", "icmp ne", "icmp ne"},
      {ScalarOp::lt, "fcmp olt", "icmp slt", "icmp ult"}, {ScalarOp::le, "fcmp ole", "icmp sle", "icmp ule"},
      {ScalarOp::gt, "fcmp ogt", "icmp sgt", "icmp ugt"}, {ScalarOp::ge, "fcmp oge", "icmp sge", "icmp uge"},
  };
  const auto* row = std::find_if(std::begin(kTable), std::end(kTable), [&](auto& r) { return r.op == a.op; });
  std::string_view predicate = floating(a)                 ? row->real
                               : is_signed(a.operand_type) ? row->with_sign
                                                           : row->without;
  return e.b.compare(predicate, a.x[0], a.x[1]);
}

Operand emit_where(Emission& e, const Application& a) { return e.b.select(a.x[0], a.x[1], a.x[2], "where"); }

Operand emit_predicate(Emission& e, const Application& a) {
  const Operand& x = a.x[0];
  if (a.op == ScalarOp::isnan) return e.b.compare("fcmp uno", x, x, "isnan");
  if (a.op == ScalarOp::signbit) {
    Operand bits = e.b.convert("bitcast", x, x.type.prim == Prim::f32 ? Prim::i32 : Prim::i64, "bits");
    return e.b.compare("icmp slt", bits, zero_of(bits.type), "signbit");
  }
  Operand infinity = real(x, std::numeric_limits<double>::infinity());
  return e.b.compare(a.op == ScalarOp::isinf ? "fcmp oeq" : "fcmp olt", e.b.intrinsic("fabs", {x}), infinity,
                     ops::to_text(a.op));
}

Operand emit_reciprocal(Emission& e, const Application& a) {
  Operand x = a.op == ScalarOp::rsqrt ? e.b.intrinsic("sqrt", {a.x[0]}) : a.x[0];
  return e.b.binary("fdiv", real(x, 1), x, ops::to_text(a.op));
}

std::string_view fmod_symbol(const Operand& x) { return x.type.prim == Prim::f32 ? "fmodf" : "fmod"; }

// A remainder of the other sign than the divisor, and not zero.
Operand wrong_side(Emission& e, const Operand& remainder, const Operand& divisor) {
  Operand zero = zero_of(remainder.type);
  Operand differ = e.b.binary("xor", e.b.compare("fcmp olt", remainder, zero),
                              e.b.compare("fcmp olt", divisor, zero_of(divisor.type)), "differ");
  return e.b.binary("and", differ, e.b.compare("fcmp une", remainder, zero), "wrong");
}

// The steps of ops::eval_floor_div, in order: each rounds.
Operand emit_real_floor_div(Emission& e, const Application& a) {
  Builder& b = e.b;
  Operand x = a.x[0], d = a.x[1];
  b.unify({&x, &d});
  Operand remainder = call_per_lane(e, fmod_symbol(x), {x, d});
  Operand quotient = b.binary("fdiv", b.binary("fsub", x, remainder), d, "quotient");
  quotient =
      b.select(wrong_side(e, remainder, d), b.binary("fsub", quotient, real(x, 1)), quotient, "quotient");
  Operand floored = b.intrinsic("floor", {quotient});
  Operand up = b.compare("fcmp ogt", b.binary("fsub", quotient, floored), real(x, 0.5), "up");
  Operand whole = b.select(up, b.binary("fadd", floored, real(x, 1)), floored, "whole");
  Operand plain = b.binary("fdiv", x, d, "plain");
  Operand zero = b.intrinsic("copysign", {real(x, 0), plain});
  Operand result = b.select(b.compare("fcmp oeq", quotient, zero_of(x.type)), zero, whole);
  return b.select(b.compare("fcmp oeq", d, zero_of(x.type)), plain, result, "floor_div");
}

Operand emit_division(Emission& e, const Application& a) {
  if (!floating(a)) return emit_integer_division(e, a);
  Builder& b = e.b;
  Operand x = a.x[0], d = a.x[1];
  b.unify({&x, &d});
  if (a.op == ScalarOp::floor_div) return emit_real_floor_div(e, a);
  if (a.op == ScalarOp::trunc_div) return b.intrinsic("trunc", {b.binary("fdiv", x, d)});
  Operand remainder = call_per_lane(e, fmod_symbol(x), {x, d});
  if (a.op == ScalarOp::fmod) return remainder;
  return b.select(wrong_side(e, remainder, d), b.binary("fadd", remainder, d), remainder, "rem");
}

// Small whole exponents multiply, as eager does; -0.5 and 0.5 differ from roots at -0.0 and -inf.
Operand emit_pow(Emission& e, const Application& a) {
  if (!floating(a)) return emit_integer_power(e, a);
  const Operand &x = a.x[0], &y = a.x[1];
  Builder& b = e.b;
  if (y.is("1.0")) return x;
  if (y.is("2.0")) return b.binary("fmul", x, x, "square");
  if (y.is("3.0")) return b.binary("fmul", b.binary("fmul", x, x, "square"), x, "cube");
  if (y.is("-1.0")) return b.binary("fdiv", real(x, 1), x, "inverse");
  if (y.is("-2.0")) return b.binary("fdiv", real(x, 1), b.binary("fmul", x, x, "square"), "inverse");
  return emit_math(e, "pow", "pow", a.x);
}

// max + log1p(exp(-|a - b|)); equal infinities are their own result.
Operand emit_logaddexp(Emission& e, const Application& a) {
  Builder& b = e.b;
  Operand x = a.x[0], y = a.x[1];
  b.unify({&x, &y});
  Operand most = b.select(b.compare("fcmp olt", x, y), y, x, "most");
  Operand gap = b.unary("fneg", b.intrinsic("fabs", {b.binary("fsub", x, y, "gap")}));
  Operand rest = emit_math(e, "log1p", "log1p", {emit_math(e, "exp", "exp", {gap})});
  Operand infinite =
      b.compare("fcmp oeq", b.intrinsic("fabs", {x}), real(x, std::numeric_limits<double>::infinity()));
  Operand same = b.binary("and", infinite, b.compare("fcmp oeq", x, y), "same");
  return b.select(same, x, b.binary("fadd", most, rest), "logaddexp");
}

Operand emit_sigmoid(Emission& e, const Application& a) {
  if (a.operand_type == DType::f32) return emit_math(e, "sigmoid", "", a.x);
  Operand growth = emit_math(e, "exp", "exp", {e.b.unary("fneg", a.x[0])});
  return e.b.binary("fdiv", real(growth, 1), e.b.binary("fadd", growth, real(growth, 1)), "sigmoid");
}

Operand emit_bitcast(Emission& e, const Application& a) {
  Prim to = value_prim(a.type);
  Operand x = a.operand_type == DType::b1 ? e.b.convert("zext", a.x[0], Prim::i8) : a.x[0];
  if (a.type == DType::b1) return e.b.compare("icmp ne", x, zero_of(x.type), "bitcast");
  return x.type.prim == to ? x : e.b.convert("bitcast", x, to);
}

struct Custom {
  ScalarOp op;
  CustomForm form;
};

constexpr Custom kCustom[] = {
    {ScalarOp::neg, emit_neg},
    {ScalarOp::abs, emit_abs},
    {ScalarOp::sign, emit_sign},
    {ScalarOp::minimum, emit_extremum},
    {ScalarOp::maximum, emit_extremum},
    {ScalarOp::fmin, emit_number_extremum},
    {ScalarOp::fmax, emit_number_extremum},
    {ScalarOp::not_, emit_not},
    {ScalarOp::shift_left, emit_shift},
    {ScalarOp::shift_right, emit_shift},
    {ScalarOp::eq, emit_compare},
    {ScalarOp::ne, emit_compare},
    {ScalarOp::lt, emit_compare},
    {ScalarOp::le, emit_compare},
    {ScalarOp::gt, emit_compare},
    {ScalarOp::ge, emit_compare},
    {ScalarOp::where, emit_where},
    {ScalarOp::cast, emit_cast},
    {ScalarOp::bitcast, emit_bitcast},
    {ScalarOp::isnan, emit_predicate},
    {ScalarOp::isinf, emit_predicate},
    {ScalarOp::isfinite, emit_predicate},
    {ScalarOp::signbit, emit_predicate},
    {ScalarOp::rsqrt, emit_reciprocal},
    {ScalarOp::reciprocal, emit_reciprocal},
    {ScalarOp::floor_div, emit_division},
    {ScalarOp::trunc_div, emit_division},
    {ScalarOp::rem, emit_division},
    {ScalarOp::fmod, emit_division},
    {ScalarOp::pow, emit_pow},
    {ScalarOp::logaddexp, emit_logaddexp},
    {ScalarOp::sigmoid, emit_sigmoid},
    {ScalarOp::check_index, emit_index_check},
    {ScalarOp::wrap_index, emit_index_check},
    {ScalarOp::random_uniform, emit_random},
};

Operand emit_custom(Emission& e, const Application& a) {
  const auto* row =
      std::find_if(std::begin(kCustom), std::end(kCustom), [&](auto& r) { return r.op == a.op; });
  CHECK(row != std::end(kCustom), "{} is custom but has no form", ops::to_text(a.op));
  return row->form(e, a);
}

Operand emit_form(Emission& e, const Application& a) {
  const ops::LlvmRow& row = ops::info(a.op).llvm;
  switch (row.form) {
    case ops::LlvmForm::instruction:
      return e.b.binary(floating(a) ? row.float_text : row.int_text, a.x[0], a.x[1], ops::to_text(a.op));
    case ops::LlvmForm::intrinsic: return e.b.intrinsic(row.float_text, a.x, ops::to_text(a.op));
    case ops::LlvmForm::vector_math: return emit_math(e, row.float_text, row.int_text, a.x);
    case ops::LlvmForm::call:
      return call_per_lane(e, a.operand_type == DType::f32 ? row.float_text : row.int_text, a.x);
    case ops::LlvmForm::custom: return emit_custom(e, a);
    case ops::LlvmForm::unsupported: break;
  }
  UNREACHABLE("{} passed check_supported", ops::to_text(a.op));
}

}  // namespace

Prim value_prim(DType dtype) {
  switch (dtype) {
    case DType::b1: return Prim::i1;
    case DType::u8:
    case DType::i8: return Prim::i8;
    case DType::i16:
    case DType::f16:
    case DType::bf16: return Prim::i16;
    case DType::i32: return Prim::i32;
    case DType::i64: return Prim::i64;
    case DType::f32: return Prim::f32;
    case DType::f64: return Prim::f64;
  }
  UNREACHABLE("dtype {}", static_cast<int>(dtype));
}

Prim storage_prim(DType dtype) { return dtype == DType::b1 ? Prim::i8 : value_prim(dtype); }

Operand constant_of(const Scalar& scalar) {
  Prim prim = value_prim(scalar.dtype);
  if (scalar.dtype == DType::bf16) return int_constant(prim, bf16_bits(static_cast<float>(scalar.f)));
  if (scalar.dtype == DType::f16) return int_constant(prim, f16_bits(static_cast<float>(scalar.f)));
  return is_floating(scalar.dtype) ? real_constant(prim, scalar.f) : int_constant(prim, scalar.i);
}

Operand emit_apply(Emission& e, loop::ValueId id, const loop::Value& value) {
  Application a = {.op = value.op,
                   .operand_type = e.kernel.values[value.operands[0]].dtype,
                   .type = value.dtype,
                   .x = {},
                   .id = id};
  for (loop::ValueId operand : value.operands) a.x.push_back(e.value(operand));
  return emit_form(e, a);
}

Operand call_per_lane(Emission& e, std::string_view symbol, std::vector<Operand> arguments) {
  std::vector<Operand*> all;
  for (Operand& argument : arguments) all.push_back(&argument);
  e.b.unify(all);
  return each_lane(e, symbol, arguments, arguments[0].type.prim, [&](Builder& b, std::span<const Operand> x) {
    return b.call({arguments[0].type.prim}, symbol, x, "result");
  });
}

// The lanes go through memory: a loop that picks lanes out of registers does so too, but worse.
Operand each_lane(Emission& e, std::string_view name, std::span<const Operand> arguments, Prim result,
                  const ScalarBody& body) {
  int lanes = arguments[0].type.lanes;
  if (lanes == 0) return body(e.b, arguments);
  Type type = {result, lanes};
  std::string symbol = fmt::format("each.{}.{}", name, suffix(arguments[0].type));
  Operand called = e.b.call(type, symbol, arguments, std::string(name));
  std::string& definition = e.b.module().functions[symbol];
  if (!definition.empty()) return called;

  Builder b(e.b.module());
  std::string parameters;
  std::vector<Operand> slots, elements;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string parameter = b.fresh("x");
    parameters += fmt::format("{}{} %{}", i ? ", " : "", to_text(arguments[i].type), parameter);
    slots.push_back(b.stack(to_text(arguments[i].type), 1, 64, "in"));
    b.store({"%" + parameter, arguments[i].type, false}, slots.back(), 64);
  }
  Operand out = b.stack(to_text(type), 1, 64, "out");
  b.branch("loop");
  b.start("loop");
  Operand lane = b.phi({Prim::i64}, "lane");
  for (size_t i = 0; i < arguments.size(); ++i) {
    Prim prim = arguments[i].type.prim;
    elements.push_back(b.load({prim}, b.element(prim, slots[i], lane), bit_width(prim) / 8, "element"));
  }
  Operand value = body(b, elements);
  b.store(value, b.element(result, out, lane), bit_width(result) / 8);
  Operand next = b.binary("add", lane, int_constant(Prim::i64, 1), "next");
  b.add_incoming(lane, int_constant(Prim::i64, 0), "entry");
  b.add_incoming(lane, next, b.current());
  b.branch(b.compare("icmp ult", next, int_constant(Prim::i64, lanes), "more"), "loop", "done");
  b.start("done");
  Operand all = b.load(type, out, 64, "all");
  b.emit(fmt::format("ret {} {}", to_text(type), all.text));
  // The map may have grown while the body was written.
  e.b.module().functions[symbol] = b.finish(fmt::format("define internal {} {}({}) noinline nounwind",
                                                        to_text(type), global_name(symbol), parameters));
  return called;
}

}  // namespace kerf::codegen
