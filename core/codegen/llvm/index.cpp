#include <algorithm>
#include <bit>

#include "codegen/llvm/emission.h"
#include "sym/text.h"

namespace kerf::codegen {

using sym::Expr;
using sym::Kind;

namespace {

bool is_power_of_two(int64_t v) { return v > 0 && std::has_single_bit(static_cast<uint64_t>(v)); }

// Emits an expression on i64, either for lane 0 or for all lanes (`wide`).
struct IndexCode {
  Emission& e;
  bool wide;

  Operand emit(Expr expr) {
    if (wide && !is_varying(e, expr)) return IndexCode{e, false}.emit(expr);
    switch (expr.kind()) {
      case Kind::constant: return int_constant(Prim::i64, expr.constant());
      case Kind::symbol: return symbol(expr);
      case Kind::add: return sum(expr);
      case Kind::mul: return fold(expr, [&](const Operand& a, const Operand& c) { return e.b.mul(a, c); });
      case Kind::min:
        return fold(expr, [&](const Operand& a, const Operand& c) { return pick("smin", a, c); });
      case Kind::max:
        return fold(expr, [&](const Operand& a, const Operand& c) { return pick("smax", a, c); });
      case Kind::floor_div: return floor_div(expr.operand(0), expr.operand(1));
      case Kind::mod: return mod(expr.operand(0), expr.operand(1));
    }
    UNREACHABLE("sym kind {}", static_cast<int>(expr.kind()));
  }

 private:
  Operand symbol(Expr expr) {
    if (expr.symbol().kind == sym::SymbolKind::value) return integer_value(expr);
    auto found = e.symbols.find(expr.node());
    CHECK(found != e.symbols.end(), "symbol {} is not bound here", sym::to_text(expr));
    if (!wide) return found->second;
    return e.b.binary("add", found->second, lane_numbers(Prim::i64, e.lanes), expr.symbol().name + ".lanes");
  }

  // Integer values of any width are indices as 64-bit numbers.
  Operand integer_value(Expr expr) {
    loop::ValueId id(expr.symbol().value);
    Operand value = e.value(id);
    if (value.type.prim == Prim::i64) return value;
    bool sign = is_signed(e.kernel.values[id].dtype);
    return e.b.convert(sign ? "sext" : "zext", value, Prim::i64, "wide");
  }

  template <class Combine>
  Operand fold(Expr expr, Combine combine) {
    Operand result = emit(expr.operand(0));
    for (size_t i = 1; i < expr.size(); ++i) result = combine(result, emit(expr.operand(i)));
    return result;
  }

  // Uniform terms first: one broadcast of their sum, and a scalar that LICM can hoist.
  Operand sum(Expr expr) {
    Operand uniform, lanes;
    for (size_t i = 0; i < expr.size(); ++i) {
      Operand term = emit(expr.operand(i));
      Operand& into = term.type.is_vector() ? lanes : uniform;
      into = into.valid() ? e.b.add(into, term) : term;
    }
    if (!lanes.valid()) return uniform;
    return uniform.valid() ? e.b.add(uniform, lanes) : lanes;
  }

  Operand pick(std::string_view name, const Operand& a, const Operand& c) {
    return e.b.intrinsic(name, {a, c}, name);
  }

  bool never_negative(Expr expr) {
    auto lo = sym::range_of(expr, e.facts).lo;
    return lo && *lo >= 0;
  }

  // An inactive lane may hold anything, and dividing by zero traps.
  Operand safe_divisor(const Operand& divisor) {
    if (!divisor.type.is_vector() || divisor.literal) return divisor;
    Operand zero = e.b.compare("icmp eq", divisor, zero_of(divisor.type), "is.zero");
    return e.b.select(zero, int_constant(Prim::i64, 1), divisor, "divisor");
  }

  // Vectors have no division, and no 64-bit product's upper half, so LLVM divides lane by lane. A numerator of at most 30 bits
  // (moved up by a multiple of the divisor where it may be negative) is divided exactly by one 32 x 32 -> 64 product:
  // a // d = a * m >> s for a < 2^n, with s = n + ceil(log2 d) and m = 2^s // d + 1 (Granlund and Montgomery).
  struct Narrow {
    Operand numerator;  // moved
    Operand quotient;   // of the moved numerator
    int64_t moved = 0;  // divisors
  };
  std::optional<Narrow> narrow_division(Expr numerator, Expr divisor) {
    if (!wide || !divisor.is_constant() || divisor.constant() <= 0) return std::nullopt;
    constexpr int kMostBits = 30;
    constexpr int64_t kLimit = int64_t{1} << kMostBits;
    int64_t d = divisor.constant();
    sym::Range range = sym::range_of(numerator, e.facts);
    if (d >= kLimit || !range.lo || !range.hi || *range.lo <= -kLimit || *range.hi >= kLimit)
      return std::nullopt;
    Narrow narrow;
    if (*range.lo < 0) narrow.moved = (d - 1 - *range.lo) / d;
    int64_t highest = std::max<int64_t>(*range.hi + narrow.moved * d, 0);
    int bits = std::bit_width(static_cast<uint64_t>(highest));
    if (bits > kMostBits) return std::nullopt;
    int shift = bits + std::bit_width(static_cast<uint64_t>(d - 1));
    auto factor = static_cast<int64_t>((uint64_t{1} << shift) / static_cast<uint64_t>(d) + 1);
    Operand a = emit(numerator);
    if (narrow.moved) a = e.b.add(a, int_constant(Prim::i64, narrow.moved * d));
    narrow.numerator = e.b.binary("and", a, int_constant(Prim::i64, 0xffffffff), "low");
    Operand product = e.b.binary("mul", narrow.numerator, int_constant(Prim::i64, factor), "product");
    narrow.quotient = e.b.binary("lshr", product, int_constant(Prim::i64, shift), "div");
    return narrow;
  }

  // LLVM divides towards zero; sym divides towards minus infinity.
  Operand floor_div(Expr numerator, Expr divisor) {
    if (divisor.is_constant() && is_power_of_two(divisor.constant())) {
      Operand a = emit(numerator);
      int shift = std::countr_zero(static_cast<uint64_t>(divisor.constant()));
      return e.b.binary("ashr", a, int_constant(Prim::i64, shift), "div");
    }
    if (std::optional<Narrow> narrow = narrow_division(numerator, divisor)) {
      if (!narrow->moved) return narrow->quotient;
      return e.b.add(narrow->quotient, int_constant(Prim::i64, -narrow->moved));
    }
    Operand a = emit(numerator);
    Operand d = safe_divisor(emit(divisor));
    if (never_negative(numerator) && never_negative(divisor)) return e.b.binary("udiv", a, d, "div");
    Operand quotient = e.b.binary("sdiv", a, d, "div");
    Operand rest = e.b.binary("sub", a, e.b.binary("mul", quotient, d, "back"), "rest");
    return e.b.binary("sub", quotient, e.b.convert("zext", wrong_side(rest, d), Prim::i64, "one"), "div");
  }

  Operand mod(Expr numerator, Expr divisor) {
    if (divisor.is_constant() && is_power_of_two(divisor.constant()))
      return e.b.binary("and", emit(numerator), int_constant(Prim::i64, divisor.constant() - 1), "mod");
    if (std::optional<Narrow> narrow = narrow_division(numerator, divisor)) {
      Operand whole = e.b.binary("mul", narrow->quotient, emit(divisor), "whole");
      return e.b.binary("sub", narrow->numerator, whole, "mod");
    }
    Operand a = emit(numerator);
    Operand d = safe_divisor(emit(divisor));
    if (never_negative(numerator) && never_negative(divisor)) return e.b.binary("urem", a, d, "mod");
    Operand rest = e.b.binary("srem", a, d, "mod");
    return e.b.select(wrong_side(rest, d), e.b.binary("add", rest, d, "mod"), rest, "mod");
  }

  // A remainder that is not zero and has the other sign than the divisor.
  Operand wrong_side(const Operand& rest, const Operand& divisor) {
    Operand differ =
        e.b.compare("icmp slt", e.b.binary("xor", rest, divisor, "signs"), zero_of(rest.type), "differ");
    Operand some = e.b.compare("icmp ne", rest, zero_of(rest.type), "some");
    return e.b.binary("and", differ, some, "wrong");
  }
};

// 0: sizes alone, k: the k-th loop is the innermost that it mentions, one more than all loops: loop values.
size_t depth_of(const Emission& e, Expr term) {
  std::vector<Expr> symbols;
  sym::collect_symbols(term, symbols);
  size_t depth = 0;
  for (Expr symbol : symbols) {
    if (symbol.symbol().kind == sym::SymbolKind::value) return e.nest.size() + 1;
    auto at = std::find(e.nest.begin(), e.nest.end(), symbol);
    if (at != e.nest.end()) depth = std::max(depth, static_cast<size_t>(at - e.nest.begin()) + 1);
  }
  return depth;
}

}  // namespace

bool is_varying(const Emission& e, Expr expr) {
  if (e.lanes == 0) return false;
  if (expr.is_symbol()) {
    if (expr.symbol().kind == sym::SymbolKind::value) return e.varying[expr.symbol().value];
    return expr == e.lane_axis;
  }
  for (size_t i = 0; i < expr.size(); ++i) {
    if (is_varying(e, expr.operand(i))) return true;
  }
  return false;
}

// A vector starts at a multiple of the lane count, so (v // 128) is the same for 16 lanes and (v % 128) counts up:
// neither crosses a multiple of 128 within them.
std::optional<Expr> lane_stride(const Emission& e, Expr expr) {
  sym::Context& context = *e.kernel.context;
  Expr zero = context.constant(0);
  if (!is_varying(e, expr)) return zero;
  if (expr == e.lane_axis) return context.constant(1);
  switch (expr.kind()) {
    case Kind::constant:
    case Kind::symbol:
    case Kind::min:
    case Kind::max: return std::nullopt;
    case Kind::add: {
      Expr stride = zero;
      for (size_t i = 0; i < expr.size(); ++i) {
        auto term = lane_stride(e, expr.operand(i));
        if (!term) return std::nullopt;
        stride = sym::add(stride, *term);
      }
      return stride;
    }
    case Kind::mul: {
      std::optional<Expr> stride;
      Expr factor = context.constant(1);
      for (size_t i = 0; i < expr.size(); ++i) {
        if (!is_varying(e, expr.operand(i))) {
          factor = sym::mul(factor, expr.operand(i));
        } else if (stride) {
          return std::nullopt;
        } else if (stride = lane_stride(e, expr.operand(i)); !stride) {
          return std::nullopt;
        }
      }
      return sym::mul(*stride, factor);
    }
    case Kind::floor_div:
    case Kind::mod: {
      auto stride = lane_stride(e, expr.operand(0));
      Expr divisor = expr.operand(1);
      if (!stride || !stride->is_constant(1) || !divisor.is_constant()) return std::nullopt;
      if (divisor.constant() <= 0 || divisor.constant() % e.lanes != 0) return std::nullopt;
      Expr start = context.symbol("vector.start", sym::SymbolKind::axis);
      sym::Substitution first = {e.lane_axis, start * e.lanes};
      sym::Modulus start_of =
          sym::modulus_of(sym::substitute(expr.operand(0), std::span(&first, 1)), e.facts);
      bool aligned = start_of.modulus == 0
                         ? start_of.remainder % e.lanes == 0
                         : start_of.modulus % e.lanes == 0 && start_of.remainder % e.lanes == 0;
      if (!aligned) return std::nullopt;
      return context.constant(expr.kind() == Kind::mod ? 1 : 0);
    }
  }
  UNREACHABLE("sym kind {}", static_cast<int>(expr.kind()));
}

Operand scalar_index(Emission& e, Expr expr) { return IndexCode{e, false}.emit(expr); }
Operand lane_index(Emission& e, Expr expr) { return IndexCode{e, true}.emit(expr); }

Operand address_of(Emission& e, Prim prim, const Operand& base, Expr index) {
  std::vector<Operand> steps(e.nest.size() + 3);  // of sizes, each loop, values, and the constant
  auto add = [&](Expr term) {
    Operand value = scalar_index(e, term);
    Operand& step = value.literal ? steps.back() : steps[depth_of(e, term)];
    step = step.valid() ? e.b.add(step, value) : value;
  };
  if (index.kind() == Kind::add) {
    for (size_t i = 0; i < index.size(); ++i) add(index.operand(i));
  } else {
    add(index);
  }
  Operand address = base;
  for (const Operand& step : steps)
    if (step.valid()) address = e.b.element(prim, address, step);
  return address;
}

}  // namespace kerf::codegen
