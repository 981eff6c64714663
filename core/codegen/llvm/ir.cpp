#include "codegen/llvm/ir.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>

#include "base/check.h"

namespace kerf::codegen {

namespace {

struct PrimInfo {
  std::string_view text;
  std::string_view suffix;
  int bits;
};

constexpr PrimInfo kPrims[] = {{"i1", "i1", 1},      {"i8", "i8", 8},       {"i16", "i16", 16},
                               {"i32", "i32", 32},   {"i64", "i64", 64},    {"half", "f16", 16},
                               {"float", "f32", 32}, {"double", "f64", 64}, {"ptr", "p0", 64}};

const PrimInfo& info(Prim prim) { return kPrims[static_cast<int>(prim)]; }

std::string join(std::span<const int> lanes) {
  std::string text;
  for (int lane : lanes) text += fmt::format("{}i32 {}", text.empty() ? "" : ", ", lane);
  return text;
}

std::string typed(const Operand& operand) { return to_text(operand.type) + " " + operand.text; }

std::string argument_list(std::span<const Operand> arguments, bool with_values) {
  std::string text;
  for (const Operand& argument : arguments) {
    if (!text.empty()) text += ", ";
    text += with_values ? typed(argument) : to_text(argument.type);
  }
  return text;
}

int64_t as_int(const Operand& literal) { return std::stoll(literal.text); }

bool both_integers(const Operand& a, const Operand& b) {
  return a.literal && b.literal && !a.type.is_vector() && !b.type.is_vector() && a.type.prim == Prim::i64;
}

}  // namespace

std::string to_text(Type type) {
  if (!type.is_vector()) return std::string(info(type.prim).text);
  return fmt::format("<{} x {}>", type.lanes, info(type.prim).text);
}

std::string suffix(Type type) {
  if (!type.is_vector()) return std::string(info(type.prim).suffix);
  return fmt::format("v{}{}", type.lanes, info(type.prim).suffix);
}

int bit_width(Prim prim) { return info(prim).bits; }
bool is_float(Prim prim) { return prim == Prim::half || prim == Prim::f32 || prim == Prim::f64; }

Operand int_constant(Prim prim, int64_t value) {
  if (prim == Prim::i1) return {value ? "true" : "false", {prim}, true};
  return {fmt::format("{}", value), {prim}, true};
}

// Short decimals stay readable; LLVM rejects decimals that are not exact, so everything else is written as the bits
// of the double.
Operand real_constant(Prim prim, double value) {
  bool short_decimal =
      std::isfinite(value) && std::abs(value) < 1e6 && value * 256 == std::nearbyint(value * 256);
  if (short_decimal) {
    std::string text = fmt::format("{:.8f}", value);
    while (text.back() == '0' && text[text.size() - 2] != '.') text.pop_back();
    return {text, {prim}, true};
  }
  return {fmt::format("0x{:016X}", std::bit_cast<uint64_t>(value)), {prim}, true};
}

Operand zero_of(Type type) {
  if (type.is_vector()) return {"zeroinitializer", type, true};
  if (type.prim == Prim::ptr) return {"null", type, true};
  return is_float(type.prim) ? real_constant(type.prim, 0) : int_constant(type.prim, 0);
}

Operand lane_numbers(Prim prim, int lanes) {
  std::string text;
  for (int lane = 0; lane < lanes; ++lane) {
    text += fmt::format("{}{} {}", lane ? ", " : "<", info(prim).text, lane);
  }
  return {text + ">", {prim, lanes}, false};
}

std::string global_name(std::string_view symbol) {
  bool plain = std::all_of(symbol.begin(), symbol.end(),
                           [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
  return plain ? fmt::format("@{}", symbol) : fmt::format("@\"{}\"", symbol);
}

std::string Module::to_text() const {
  std::string text;
  for (const std::string& main : mains) text += main + "\n";
  for (const auto& [symbol, definition] : functions) text += definition + "\n";
  for (const auto& [symbol, line] : declarations) {
    if (!functions.contains(symbol)) text += line + "\n";
  }
  return text;
}

std::string Builder::fresh(std::string_view hint) {
  auto [position, first] = names_.try_emplace(std::string(hint), 0);
  if (first) return std::string(hint);
  // A numbered name may itself have been taken as a hint.
  for (;;) {
    std::string name = fmt::format("{}.{}", hint, ++names_.at(std::string(hint)));
    if (names_.try_emplace(name, 0).second) return name;
  }
}

void Builder::comment(std::string_view text) { lines_.push_back(fmt::format("  ; {}", text)); }
void Builder::emit(std::string_view line) { lines_.push_back(fmt::format("  {}", line)); }

Operand Builder::define(Type type, std::string_view hint, std::string_view rhs) {
  std::string name = fresh(hint);
  lines_.push_back(fmt::format("  %{} = {}", name, rhs));
  return {"%" + name, type, false};
}

void Builder::start(const Label& label) {
  lines_.push_back(label + ":");
  current_ = label;
}

void Builder::branch(const Label& to) { emit(fmt::format("br label %{}", to)); }

void Builder::branch(const Operand& condition, const Label& then, const Label& otherwise, bool unlikely) {
  emit(fmt::format("br i1 {}, label %{}, label %{}{}", condition.text, then, otherwise,
                   unlikely ? ", !prof !{!\"branch_weights\", i32 1, i32 1048575}" : ""));
}

Operand Builder::phi(Type type, std::string_view hint) {
  std::string name = fresh(hint);
  phis_[name] = {.line = lines_.size(), .type = type, .incoming = {}};
  lines_.emplace_back();
  return {"%" + name, type, false};
}

void Builder::add_incoming(const Operand& phi, const Operand& value, const Label& from) {
  CHECK(phi.type == value.type, "phi {} of {} gets {}", phi.text, codegen::to_text(phi.type),
        codegen::to_text(value.type));
  phis_.at(phi.text.substr(1)).incoming.emplace_back(value.text, from);
}

Operand Builder::binary(std::string_view op, Operand a, Operand b, std::string_view hint) {
  unify({&a, &b});
  CHECK(a.type == b.type, "{} of {} and {}", op, codegen::to_text(a.type), codegen::to_text(b.type));
  std::string_view name = hint.empty() ? op.substr(0, op.find(' ')) : hint;
  return define(a.type, name, fmt::format("{} {}, {}", op, typed(a), b.text));
}

Operand Builder::compare(std::string_view op, Operand a, Operand b, std::string_view hint) {
  unify({&a, &b});
  CHECK(a.type == b.type, "{} of {} and {}", op, codegen::to_text(a.type), codegen::to_text(b.type));
  std::string_view name = hint.empty() ? op.substr(op.find(' ') + 1) : hint;
  return define({Prim::i1, a.type.lanes}, name, fmt::format("{} {}, {}", op, typed(a), b.text));
}

Operand Builder::select(Operand condition, Operand a, Operand b, std::string_view hint) {
  if (condition.type.is_vector()) {
    unify({&condition, &a, &b});
  } else {
    unify({&a, &b});
  }
  CHECK(a.type == b.type, "select of {} and {}", codegen::to_text(a.type), codegen::to_text(b.type));
  return define(a.type, hint.empty() ? "select" : hint,
                fmt::format("select {}, {}, {}", typed(condition), typed(a), typed(b)));
}

Operand Builder::convert(std::string_view op, const Operand& a, Prim to, std::string_view hint) {
  Type type = {to, a.type.lanes};
  return define(type, hint.empty() ? op : hint,
                fmt::format("{} {} to {}", op, typed(a), codegen::to_text(type)));
}

Operand Builder::unary(std::string_view op, const Operand& a, std::string_view hint) {
  return define(a.type, hint.empty() ? op : hint, fmt::format("{} {}", op, typed(a)));
}

Operand Builder::intrinsic(std::string_view name, std::vector<Operand> arguments, std::string_view hint) {
  std::vector<Operand*> all;
  for (Operand& argument : arguments) all.push_back(&argument);
  unify(all);
  std::string symbol = fmt::format("llvm.{}.{}", name, suffix(arguments[0].type));
  return call(arguments[0].type, symbol, arguments, hint.empty() ? name : hint);
}

void Builder::declare(Type result, bool is_void, std::string_view symbol,
                      std::span<const Operand> arguments) {
  std::string& line = module_->declarations[std::string(symbol)];
  if (!line.empty()) return;
  line = fmt::format("declare {} {}({})", is_void ? "void" : codegen::to_text(result), global_name(symbol),
                     argument_list(arguments, false));
}

Operand Builder::call(Type result, std::string_view symbol, std::span<const Operand> arguments,
                      std::string_view hint) {
  declare(result, false, symbol, arguments);
  return define(result, hint,
                fmt::format("call {} {}({})", codegen::to_text(result), global_name(symbol),
                            argument_list(arguments, true)));
}

void Builder::call_void(std::string_view symbol, std::span<const Operand> arguments) {
  declare({}, true, symbol, arguments);
  emit(fmt::format("call void {}({})", global_name(symbol), argument_list(arguments, true)));
}

Operand Builder::broadcast(const Operand& a, int lanes) {
  if (a.type.is_vector() || lanes == 0) {
    CHECK(a.type.lanes == lanes, "broadcast of {} to {} lanes", codegen::to_text(a.type), lanes);
    return a;
  }
  Type type = {a.type.prim, lanes};
  if (a.literal) return {fmt::format("splat ({})", typed(a)), type, true};
  Operand first = define(type, "lane0",
                         fmt::format("insertelement {} poison, {}, i32 0", codegen::to_text(type), typed(a)));
  std::string mask = fmt::format("<{} x i32> zeroinitializer", lanes);
  return define(type, "splat",
                fmt::format("shufflevector {}, {} poison, {}", typed(first), codegen::to_text(type), mask));
}

void Builder::unify(std::vector<Operand*> operands) {
  int lanes = 0;
  for (const Operand* operand : operands) lanes = std::max(lanes, operand->type.lanes);
  for (Operand* operand : operands) *operand = broadcast(*operand, lanes);
}

Operand Builder::extract(const Operand& vector, const Operand& lane) {
  return define({vector.type.prim}, "lane", fmt::format("extractelement {}, {}", typed(vector), typed(lane)));
}

Operand Builder::insert(const Operand& vector, const Operand& element, const Operand& lane) {
  return define(vector.type, "insert",
                fmt::format("insertelement {}, {}, {}", typed(vector), typed(element), typed(lane)));
}

Operand Builder::shuffle(const Operand& a, const Operand& b, std::span<const int> lanes,
                         std::string_view hint) {
  Type type = {a.type.prim, static_cast<int>(lanes.size())};
  return define(
      type, hint,
      fmt::format("shufflevector {}, {}, <{} x i32> <{}>", typed(a), typed(b), lanes.size(), join(lanes)));
}

Operand Builder::shuffle(const Operand& a, std::span<const int> lanes, std::string_view hint) {
  return shuffle(a, {"poison", a.type, false}, lanes, hint);
}

Operand Builder::part(const Operand& vector, int first, int count) {
  if (first == 0 && count == vector.type.lanes) return vector;
  if (vector.literal) return {vector.text, {vector.type.prim, count}, true};  // a splat, of any length
  std::vector<int> lanes(count);
  for (int i = 0; i < count; ++i) lanes[i] = first + i;
  return shuffle(vector, lanes, "part");
}

Operand Builder::reverse(const Operand& vector) {
  std::vector<int> lanes(vector.type.lanes);
  for (int i = 0; i < vector.type.lanes; ++i) lanes[i] = vector.type.lanes - 1 - i;
  return shuffle(vector, lanes, "reverse");
}

Operand Builder::find_lane(const Operand& mask, bool last) {
  int lanes = mask.type.lanes;
  // The mask as one integer of as many bits; such a type has no Prim, so these lines are written out.
  std::string bits = fmt::format("i{}", lanes),
              count = fmt::format("llvm.{}.{}", last ? "ctlz" : "cttz", bits);
  module_->declarations[count] = fmt::format("declare {0} @{1}({0}, i1)", bits, count);
  Operand word = define({}, "bits", fmt::format("bitcast {} to {}", typed(mask), bits));
  Operand zeros = define({}, "zeros", fmt::format("call {0} @{1}({0} {2}, i1 true)", bits, count, word.text));
  if (lanes != 64) {
    zeros =
        define({}, "zeros", fmt::format("{} {} {} to i64", lanes < 64 ? "zext" : "trunc", bits, zeros.text));
  }
  return last ? binary("sub", int_constant(Prim::i64, lanes - 1), zeros, "lane") : zeros;
}

Operand Builder::element(Prim type, const Operand& base, const Operand& index) {
  if (index.is("0")) return base;
  return define({Prim::ptr, index.type.lanes}, "at",
                fmt::format("getelementptr {}, {}, {}", info(type).text, typed(base), typed(index)));
}

Operand Builder::load(Type type, const Operand& address, int align, std::string_view hint) {
  return define(type, hint,
                fmt::format("load {}, {}, align {}", codegen::to_text(type), typed(address), align));
}

void Builder::store(const Operand& value, const Operand& address, int align, std::string_view metadata) {
  emit(fmt::format("store {}, {}, align {}{}", typed(value), typed(address), align, metadata));
}

Operand Builder::stack(std::string_view type, int64_t count, int align, std::string_view hint) {
  std::string name = fresh(hint);
  stack_.push_back(fmt::format("  %{} = alloca {}, i64 {}, align {}", name, type, count, align));
  return {"%" + name, {Prim::ptr}, false};
}

Operand Builder::add(const Operand& a, const Operand& b, std::string_view hint) {
  if (a.is("0")) return b;
  if (b.is("0")) return a;
  int64_t folded;
  if (both_integers(a, b) && !__builtin_add_overflow(as_int(a), as_int(b), &folded)) {
    return int_constant(Prim::i64, folded);
  }
  return binary("add", a, b, hint);
}

Operand Builder::mul(const Operand& a, const Operand& b, std::string_view hint) {
  if (a.is("1")) return b;
  if (b.is("1")) return a;
  int64_t folded;
  if (both_integers(a, b) && !__builtin_mul_overflow(as_int(a), as_int(b), &folded)) {
    return int_constant(Prim::i64, folded);
  }
  return binary("mul", a, b, hint);
}

std::string Builder::finish(std::string_view head) {
  for (const auto& [name, phi] : phis_) {
    std::string incoming;
    for (const auto& [value, from] : phi.incoming) {
      incoming += fmt::format("{}[ {}, %{} ]", incoming.empty() ? "" : ", ", value, from);
    }
    lines_[phi.line] = fmt::format("  %{} = phi {} {}", name, codegen::to_text(phi.type), incoming);
  }
  std::string text = fmt::format("{} {{\nentry:\n", head);
  for (const std::string& line : stack_) text += line + "\n";
  for (const std::string& line : lines_) text += line + "\n";
  return text + "}\n";
}

}  // namespace kerf::codegen
