#include <fmt/format.h>

#include "codegen/llvm/emission.h"
#include "target/artifact.h"

// Integer division and powers, index checks and the counter-based random generator.

namespace kerf::codegen {

using ops::ScalarOp;
using target::KernelError;

namespace {

// The first failure of a launch claims the record; the others are dropped. Threads share the record.
constexpr std::string_view kReport =
    R"(define internal void @kerf.report(ptr %error, i64 %code, i64 %index, i64 %bound, i64 %value) cold noinline nounwind {
entry:
  %claim = cmpxchg ptr %error, i64 0, i64 %code monotonic monotonic
  %first = extractvalue { i64, i1 } %claim, 1
  br i1 %first, label %write, label %done
write:
  %at.index = getelementptr i64, ptr %error, i64 1
  store i64 %index, ptr %at.index, align 8
  %at.bound = getelementptr i64, ptr %error, i64 2
  store i64 %bound, ptr %at.bound, align 8
  %at.value = getelementptr i64, ptr %error, i64 3
  store i64 %value, ptr %at.value, align 8
  br label %done
done:
  ret void
}
)";

Operand lane_of(Builder& b, const Operand& v, const Operand& lane) {
  return v.type.is_vector() ? b.extract(v, lane) : v;
}

// Records the first active lane where `failed` holds.
void report(Emission& e, KernelError::Code code, const Operand& failed, const Operand& index,
            const Operand& bound, loop::ValueId id) {
  Builder& b = e.b;
  b.module().functions["kerf.report"] = kReport;
  Operand active = failed;
  if (failed.type.is_vector() && e.mask.valid()) active = b.binary("and", failed, e.mask, "failed");
  Label cold = b.new_label("failed"), join = b.new_label("checked");
  b.branch(any_lane(e, active), cold, join, true);
  b.start(cold);
  Operand lane = active.type.is_vector() ? b.find_lane(active, false) : int_constant(Prim::i64, 0);
  Operand arguments[] = {e.error, int_constant(Prim::i64, code), lane_of(b, index, lane),
                         lane_of(b, bound, lane), int_constant(Prim::i64, id.index)};
  b.call_void("kerf.report", arguments);
  b.branch(join);
  b.start(join);
}

struct Division {
  ScalarOp op;
  bool sign;  // signed operands
};

// The divisor is not zero. A divisor of -1 would trap on the minimum: its quotient is the negation, wrapped.
Operand divide(Builder& b, Division division, const Operand& x, const Operand& divisor) {
  bool quotient = division.op == ScalarOp::floor_div || division.op == ScalarOp::trunc_div;
  if (!division.sign) return b.binary(quotient ? "udiv" : "urem", x, divisor, "div");
  Prim prim = divisor.type.prim;
  Operand zero = zero_of(x.type), minus_one = int_constant(prim, -1);
  Operand negates = b.compare("icmp eq", divisor, minus_one, "negates");
  Operand d = b.select(negates, int_constant(prim, 1), divisor, "divisor");
  Operand rest = b.binary("srem", x, d, "rest");
  // The remainder must move by one divisor to have its sign.
  Operand differ = b.compare("icmp slt", b.binary("xor", rest, d, "signs"), zero, "differ");
  Operand moves = b.binary("and", differ, b.compare("icmp ne", rest, zero, "some"), "moves");
  if (!quotient) {
    if (division.op == ScalarOp::fmod) return rest;
    return b.select(moves, b.binary("add", rest, d, "moved"), rest, "rem");
  }
  Operand result = b.binary("sdiv", x, d, "div");
  if (division.op == ScalarOp::floor_div) {
    result = b.binary("sub", result, b.convert("zext", moves, prim, "one"), "floor");
  }
  return b.select(negates, b.binary("sub", zero, x, "negated"), result, "quotient");
}

// base^exponent, by squaring; 1 / base^|exponent| truncated is 0 except for bases 1 and -1.
Operand power(Builder& b, bool sign, const Operand& base, const Operand& exponent) {
  Prim prim = base.type.prim;
  Operand one = int_constant(prim, 1), zero = int_constant(prim, 0), minus_one = int_constant(prim, -1);
  Label loop = b.new_label("square"), done = b.new_label("power"), before = b.current();
  b.branch(loop);
  b.start(loop);
  Operand bits = b.phi(base.type, "bits"), result = b.phi(base.type, "result"),
          factor = b.phi(base.type, "factor");
  Operand odd = b.compare("icmp ne", b.binary("and", bits, one, "bit"), zero, "odd");
  Operand product = b.select(odd, b.binary("mul", result, factor), result, "product");
  Operand squared = b.binary("mul", factor, factor, "squared");
  Operand rest = b.binary("lshr", bits, one, "rest");
  for (auto [phi, first, next] :
       {std::tuple{bits, exponent, rest}, {result, one, product}, {factor, base, squared}}) {
    b.add_incoming(phi, first, before);
    b.add_incoming(phi, next, loop);
  }
  b.branch(b.compare("icmp ne", rest, zero, "more"), loop, done);
  b.start(done);
  if (!sign) return product;
  Operand odd_exponent = b.compare("icmp ne", b.binary("and", exponent, one, "bit"), zero, "odd");
  Operand alternating = b.select(odd_exponent, minus_one, one, "alternating");
  Operand inverse = b.select(b.compare("icmp eq", base, minus_one), alternating, zero);
  inverse = b.select(b.compare("icmp eq", base, one), one, inverse, "inverse");
  return b.select(b.compare("icmp slt", exponent, zero), inverse, product, "pow");
}

}  // namespace

Operand emit_integer_division(Emission& e, const Application& a) {
  Builder& b = e.b;
  Operand x = a.x[0], d = a.x[1];
  b.unify({&x, &d});
  Division division = {a.op, is_signed(a.operand_type)};
  bool known = a.x[1].literal && a.x[1].text != "0";
  if (known) return divide(b, division, x, d);
  Prim prim = x.type.prim;
  Operand fails = b.compare("icmp eq", a.x[1], zero_of(a.x[1].type), "by.zero");
  report(e, KernelError::kDivision, fails, int_constant(Prim::i64, 0), int_constant(Prim::i64, 0), a.id);
  Operand safe = b.select(fails, int_constant(prim, 1), d, "divisor");
  Operand arguments[] = {x, safe};
  std::string name = fmt::format("{}.{}", ops::to_text(a.op), division.sign ? "signed" : "unsigned");
  Operand result = each_lane(e, name, arguments, prim, [&](Builder& lane, std::span<const Operand> v) {
    return divide(lane, division, v[0], v[1]);
  });
  return b.select(fails, int_constant(prim, 0), result, ops::to_text(a.op));
}

Operand emit_integer_power(Emission& e, const Application& a) {
  Operand x = a.x[0], y = a.x[1];
  if (y.is("1")) return x;
  if (y.is("2")) return e.b.binary("mul", x, x, "square");
  e.b.unify({&x, &y});
  Operand arguments[] = {x, y};
  bool sign = is_signed(a.operand_type);
  return each_lane(e, sign ? "pow.signed" : "pow.unsigned", arguments, x.type.prim,
                   [&](Builder& b, std::span<const Operand> v) { return power(b, sign, v[0], v[1]); });
}

Operand emit_index_check(Emission& e, const Application& a) {
  Builder& b = e.b;
  Operand zero = int_constant(Prim::i64, 0);
  const Operand &given = a.x[0], &bound = a.x[1];
  Operand index = given;
  if (a.op == ScalarOp::wrap_index) {
    Operand negative = b.compare("icmp slt", given, zero, "negative");
    index = b.select(negative, b.binary("add", given, bound, "wrapped"), given, "wrap");
  }
  Operand outside = b.binary("or", b.compare("icmp slt", index, zero, "below"),
                             b.compare("icmp sge", index, bound, "above"), "outside");
  report(e, KernelError::kIndex, outside, given, bound, a.id);
  return b.select(outside, zero, index, "index");
}

// Philox2x32-10 on 64-bit lanes whose upper halves stay zero, so that products are one 32 x 32 -> 64 instruction.
Operand emit_random(Emission& e, const Application& a) {
  constexpr int64_t kMultiplier = 0xD256D193, kWeyl = 0x9E3779B9, kMix = 0x85EBCA6B, kLow = 0xffffffff;
  Builder& b = e.b;
  auto constant = [](int64_t v) { return int_constant(Prim::i64, v); };
  auto low = [&](const Operand& v, std::string_view hint) {
    return b.binary("and", v, constant(kLow), hint);
  };
  auto high = [&](const Operand& v, std::string_view hint) {
    return b.binary("lshr", v, constant(32), hint);
  };
  b.comment("philox2x32-10");
  const Operand &seed = a.x[0], &counter = a.x[1];
  Operand mixed = b.binary("mul", high(seed, "seed.high"), constant(kMix), "mixed");
  Operand key = low(b.binary("xor", seed, mixed, "key"), "key");
  Operand first = low(counter, "first"), second = high(counter, "second");
  for (int round = 0; round < 10; ++round) {
    Operand product = b.binary("mul", first, constant(kMultiplier), "product");
    first = b.binary("xor", b.binary("xor", high(product, "upper"), key, "upper"), second, "first");
    second = low(product, "second");
    key = low(b.binary("add", key, constant(kWeyl), "key"), "key");
  }
  Operand top = b.convert("trunc", b.binary("lshr", first, constant(8), "top"), Prim::i32, "top");
  return b.binary("fmul", b.convert("sitofp", top, Prim::f32, "top"), real_constant(Prim::f32, 0x1p-24),
                  "uniform");
}

}  // namespace kerf::codegen
