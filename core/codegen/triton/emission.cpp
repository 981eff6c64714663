#include "codegen/triton/emission.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

#include "codegen/triton/library.h"
#include "loop/walk.h"
#include "sym/simplify.h"
#include "sym/text.h"

namespace kerf::codegen::triton {

using loop::Role;

namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

constexpr int64_t kNarrowElements = int64_t{1} << 31;

}  // namespace

std::vector<int64_t> form_of(std::span<const loop::Kernel> parts) {
  std::vector<int64_t> form;
  for (const loop::Kernel& part : parts) {
    sym::Facts facts = loop::facts_of(part);
    form.push_back(static_cast<int64_t>(part.axes.size()));
    for (const loop::Axis& axis : part.axes) {
      form.push_back(static_cast<int64_t>(axis.role));
      if (axis.role != Role::tile) continue;
      sym::Expr block = part.context->constant(axis.lanes);
      form.push_back(axis.lanes == 1);
      form.push_back(sym::provably_less_equal(axis.extent, block, facts));
      form.push_back(sym::provably_divides(block, axis.extent, facts));
      form.push_back(std::gcd(axis.lanes, kTransferBytes));  // what may be moved across (transfer.cpp)
    }
  }
  return form;
}

Emission::Emission(const loop::Kernel& k, Dialect d, Names taken)
    : kernel(k),
      dialect(d),
      facts(loop::facts_of(k)),
      coordinates(axis::coordinates_of(k)),
      names(std::move(taken)),
      values(k.values.size()) {
  std::vector<bool> in_tile;
  for (axis::Coordinate& coordinate : coordinates.list) {
    coordinate.name = names.give(coordinate.name);
    bool constant = coordinate.extent.is_constant();
    extents.push_back(constant ? names.give(upper(coordinate.name))
                               : "(" + sym::to_text(coordinate.extent) + ")");
    in_tile.push_back(kernel.axes[coordinate.axes.front()].role == Role::tile);
  }
  dim_of.resize(coordinates.list.size());
  for (size_t c : axis::tile_order(kernel, coordinates, in_tile)) {
    const axis::Coordinate& coordinate = coordinates.list[c];
    int64_t block_size = kernel.axes[coordinate.axes.front()].lanes;
    dim_of[c] = dims.size();
    sym::Expr block = kernel.context->constant(block_size);
    Dim dim{c, {coordinate.name, extents[c], names.give("B" + upper(coordinate.name)), block_size}};
    dim.axis.axis = coordinate.axes.front();
    dim.axis.whole = sym::provably_less_equal(coordinate.extent, block, facts);
    dim.overhangs = !sym::provably_divides(block, coordinate.extent, facts);
    dims.push_back(std::move(dim));
  }
  for (loop::BufferId b(0); b < kernel.buffers.end_id(); b = loop::BufferId(b.index + 1)) {
    auto most = sym::range_of(loop::element_count(kernel, b), facts).hi;
    wide = wide || !most || *most >= kNarrowElements;
  }
}

std::string Emission::define(std::string_view wish, const std::string& text) {
  std::string name = names.give(wish);
  line(name + " = " + text);
  return name;
}

void Emission::refuse(std::string reason) {
  if (!refusal) refusal = Unsupported{std::move(reason)};
}

Dims Emission::overhanging(Dims of) const {
  Dims result = 0;
  for (size_t d = 0; d < dims.size(); ++d)
    if ((of & bit(d)) && dims[d].overhangs) result |= bit(d);
  return result;
}

std::string Emission::mask(Dims of) const {
  std::vector<std::string> parts;
  Dims wanted = overhanging(of);
  std::string as_float = dialect == Dialect::ascend ? ".to(tl.float32)" : "";
  for (size_t d = 0; d < dims.size(); ++d)
    if (wanted & bit(d))
      parts.push_back(fmt::format("{}{} < {}", dims[d].axis.name, as_float, dims[d].axis.extent));
  if (parts.size() < 2) return parts.empty() ? "" : parts[0];
  return fmt::format("({})", fmt::join(parts, ") & ("));
}

std::string Emission::shape(Dims of) const {
  std::vector<std::string> parts;
  for (size_t d = 0; d < dims.size(); ++d) parts.push_back(of & bit(d) ? dims[d].axis.block : "1");
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::string Emission::subscript(Dims kept) const {
  std::vector<std::string> parts;
  for (size_t d = 0; d < dims.size(); ++d) parts.push_back(kept & bit(d) ? ":" : "None");
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

void Emission::define_range(size_t dim, std::string start) {
  auto define_at = [&](const std::string& name, size_t place, const std::string& factor) {
    std::string range = fmt::format("tl.arange(0, {}{})", factor, dims[dim].axis.block);
    if (!start.empty()) range = fmt::format("{}{} + {}", factor, start, range);
    if (dims.size() > 1) range = (start.empty() ? range : "(" + range + ")") + subscript(bit(place));
    line(fmt::format("{} = {}", name, range));
  };
  bool has_lanes = std::ranges::count(lanes, dim, &Lanes::dim) > 0;
  if (has_lanes && start.find(' ') != std::string::npos)
    start = define(dims[dim].axis.name + "_start", start);
  define_at(dims[dim].axis.name, dim, "");
  for (const Lanes& other : lanes)
    if (other.dim == dim) define_at(other.name, other.place, other.is_paired ? "2 * " : "");
}

void Emission::need(const std::string& function) {
  if (std::string_view other = library_needs(function); !other.empty()) need(std::string(other));
  if (library_function(function).find("libdevice.") != std::string_view::npos) uses_libdevice = true;
  if (std::find(library.begin(), library.end(), function) == library.end()) library.push_back(function);
}

std::string dtype_text(DType dtype) {
  switch (dtype) {
    case DType::b1: return "tl.int1";
    case DType::u8: return "tl.uint8";
    case DType::i8: return "tl.int8";
    case DType::i16: return "tl.int16";
    case DType::i32: return "tl.int32";
    case DType::i64: return "tl.int64";
    case DType::f16: return "tl.float16";
    case DType::bf16: return "tl.bfloat16";
    case DType::f32: return "tl.float32";
    case DType::f64: return "tl.float64";
  }
  UNREACHABLE("dtype {}", static_cast<int>(dtype));
}

std::string literal_text(const Scalar& scalar) {
  if (scalar.dtype == DType::b1) return scalar.i ? "True" : "False";
  if (!is_floating(scalar.dtype)) return fmt::format("{}", scalar.i);
  if (std::isnan(scalar.f)) return "float(\"nan\")";
  if (std::isinf(scalar.f)) return scalar.f > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  std::string text = scalar.dtype == DType::f64 ? fmt::format("{}", scalar.f)
                                                : fmt::format("{}", static_cast<float>(scalar.f));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (scalar.dtype == DType::f64) return fmt::format("tl.full((), {}, tl.float64)", text);
  return std::signbit(scalar.f) ? "(" + text + ")" : text;
}

}  // namespace kerf::codegen::triton
