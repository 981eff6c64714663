#include "loop/print.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "loop/renumber.h"
#include "loop/walk.h"
#include "sym/text.h"

namespace kerf::loop {

namespace {

std::string name_of(ValueId value) { return fmt::format("%{}", value.index); }

template <class Items, class Print>
std::string joined(const Items& items, Print print) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += ", ";
    text += print(item);
  }
  return text;
}

std::string names_of(const std::vector<ValueId>& values) { return joined(values, name_of); }

std::string floating_text(const Scalar& scalar) {
  double value = scalar.f;
  if (std::isnan(value)) {
    // A sign or payload counts: constants are compared by bits.
    for (double nan : {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::quiet_NaN()})
      if (Scalar::of(scalar.dtype, nan) == scalar) return std::signbit(nan) ? "-nan" : "nan";
    return fmt::format("bits {}", scalar.i);
  }
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // A float's shortest digits where they are enough: 0.1 and not 0.10000000149011612.
  std::string text = fmt::format("{}", static_cast<float>(value));
  if (Scalar::of(scalar.dtype, std::strtod(text.c_str(), nullptr)) != scalar) text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string_view mode_text(BufferMode mode) {
  switch (mode) {
    case BufferMode::in: return "";
    case BufferMode::out: return "out ";
    case BufferMode::inout: return "inout ";
    case BufferMode::local: return "local ";
  }
  UNREACHABLE("buffer mode");
}

std::string buffer_text(const Buffer& buffer) {
  return fmt::format("{}{}{}: {}[{}]", mode_text(buffer.mode), buffer.non_temporal ? "non_temporal " : "",
                     buffer.name, to_text(buffer.dtype),
                     joined(buffer.shape, [](sym::Expr extent) { return sym::to_text(extent); }));
}

std::string role_text(const Axis& axis) {
  switch (axis.role) {
    case Role::serial: return "";
    case Role::grid: return " grid";
    case Role::vector: return fmt::format(" vector {}", axis.lanes);
    case Role::unrolled: return " unrolled";
    case Role::tile: return fmt::format(" tile {}", axis.lanes);
  }
  UNREACHABLE("role");
}

std::string size_text(const Size& size) {
  std::string name = sym::to_text(size.symbol);
  std::vector<std::string> clauses;
  const auto& [lo, hi] = size.range;
  if (lo && hi) {
    clauses.push_back(fmt::format("{} in [{}, {}]", name, *lo, *hi));
  } else if (lo) {
    clauses.push_back(fmt::format("{} >= {}", name, *lo));
  } else if (hi) {
    clauses.push_back(fmt::format("{} <= {}", name, *hi));
  }
  const auto& [modulus, remainder] = size.modulus;
  if (modulus == 0) clauses.push_back(fmt::format("{} = {}", name, remainder));
  if (modulus > 1) clauses.push_back(fmt::format("{} mod {} = {}", name, modulus, remainder));
  return clauses.empty() ? name : joined(clauses, [](const std::string& clause) { return clause; });
}

// Prints statements line by line. Ids out of range print as they are: messages about broken kernels need text
// too.
class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {}

  std::string header() const {
    std::string text = fmt::format("kernel {}({})", kernel_.name, joined(kernel_.buffers, buffer_text));
    return kernel_.sizes.empty() ? text : text + " given " + to_text(kernel_.sizes);
  }

  void print(const Block& block, int indent, std::string& out) const {
    for (const Stmt& stmt : block) {
      out.append(static_cast<size_t>(indent), ' ');
      out += line(stmt);
      out += '\n';
      if (const Block* body = body_of(stmt)) print(*body, indent + 2, out);
      if (const auto* reduce = std::get_if<Reduce>(&stmt)) {
        out.append(static_cast<size_t>(indent) + 2, ' ');
        out += "yield " + joined(reduce->parts, yield_text) + '\n';
      }
    }
  }

  std::string line(const Stmt& stmt) const {
    return std::visit([this](const auto& s) { return text(s); }, stmt);
  }

 private:
  static std::string yield_text(const Reduction& part) {
    return part.yields.size() == 1 ? name_of(part.yields[0]) : fmt::format("({})", names_of(part.yields));
  }

  std::string text(const Define& define) const {
    return fmt::format("{} = {}", name_of(define.value), text(kernel_.values[define.value]));
  }
  std::string text(const Store& store) const {
    return fmt::format("{} {}, {}", store.mode == StoreMode::add ? "add" : "store",
                       access(store.buffer, store.index), name_of(store.value));
  }
  std::string text(const Loop& loop) const { return "for " + text(loop.axis); }
  std::string text(const Reduce& reduce) const {
    return fmt::format("{} = reduce {} for {}",
                       joined(reduce.parts, [](const Reduction& part) { return name_of(part.result); }),
                       joined(reduce.parts, [](const Reduction& part) { return ops::to_text(part.op); }),
                       joined(reduce.axes, [this](AxisId axis) { return text(axis); }));
  }
  std::string text(const Guard& guard) const { return "if " + name_of(guard.condition); }
  std::string text(const Barrier&) const { return "barrier"; }

  std::string text(AxisId id) const {
    const Axis& axis = kernel_.axes[id];
    return fmt::format("{} < {}{}", sym::to_text(axis.symbol), sym::to_text(axis.extent), role_text(axis));
  }

  std::string access(BufferId buffer, sym::Expr index) const {
    return fmt::format("{}[{}]", kernel_.buffers[buffer].name, sym::to_text(index));
  }

  std::string text(const Value& value) const {
    switch (value.kind) {
      case ValueKind::constant:
        return fmt::format("const {} {}", to_text(value.dtype), to_text(value.literal));
      case ValueKind::index: return fmt::format("index {}", sym::to_text(value.index));
      case ValueKind::load: return load_text(value);
      case ValueKind::apply: return apply_text(value);
      case ValueKind::reduced: return "reduced";  // only a broken kernel defines one by itself
    }
    UNREACHABLE("value kind");
  }

  std::string load_text(const Value& value) const {
    std::string text = fmt::format("load {}", access(value.buffer, value.index));
    if (value.operands.size() != 2) return text;
    return fmt::format("{} if {} else {}", text, name_of(value.operands[0]), name_of(value.operands[1]));
  }

  static std::string apply_text(const Value& value) {
    bool typed = ops::info(value.op).types == ops::Typing::conversion;
    return fmt::format("{} {}{}", ops::to_text(value.op),
                       typed ? fmt::format("{} ", to_text(value.dtype)) : "", names_of(value.operands));
  }

  const Kernel& kernel_;
};

}  // namespace

std::string to_text(const Scalar& scalar) {
  if (is_floating(scalar.dtype)) return floating_text(scalar);
  if (scalar.dtype == DType::b1) return scalar.i ? "true" : "false";
  return fmt::format("{}", scalar.i);
}

std::string to_text(const std::vector<Size>& sizes) { return joined(sizes, size_text); }

std::string to_text(const Kernel& kernel, const Stmt& stmt) { return Printer(kernel).line(stmt); }

std::string to_text(const Kernel& kernel) {
  Printer printer(kernel);
  std::string out = printer.header() + '\n';
  printer.print(kernel.body, 2, out);
  return out;
}

std::string canonical_text(const Kernel& kernel) {
  sym::Context context;
  return to_text(normalize(kernel, context));
}

}  // namespace kerf::loop
