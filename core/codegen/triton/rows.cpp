// Rows that lie where an index from memory says, on Ascend. The index is a scalar, and what it adds to the pointer too, so that the
// transfer is one of side by side elements:
//
//   i = tl.load(i_ptr + x0)
//   good = (i >= 0) & (i < 30522)
//   check_index = tl.where(good, i, 0)
//   x = tl.load(x_ptr + 256 * check_index + x1, mask=x1 < tl.where(good, X1, 0), other=float("nan"))
//
// An index out of range reads nothing and gives NaN: a kernel has no way to raise an error there.
#include "axis/linear.h"
#include "codegen/triton/emission.h"
#include "loop/walk.h"

namespace kerf::codegen::triton {

using sym::Expr;

namespace {

constexpr int64_t kLeastBytes = 32;  // of a transfer; less is read element by element

struct Address {
  Expr base;    // what values say
  Expr offset;  // the rest
};

Address split(Emission& e, Expr place) {
  Address address{e.kernel.context->constant(0), e.kernel.context->constant(0)};
  std::vector<Expr> terms;
  if (place.kind() == sym::Kind::add)
    for (size_t i = 0; i < place.size(); ++i) terms.push_back(place.operand(i));
  else
    terms.push_back(place);
  for (Expr term : terms) {
    Expr& part = is_looked_up(term) ? address.base : address.offset;
    part = part + term;
  }
  return address;
}

// The dimension of the tile along which the row lies.
std::optional<size_t> dimension_along(const Emission& e, Expr offset, Dims dims, DType dtype) {
  for (size_t d = 0; d < e.dims.size(); ++d) {
    if (!(dims & e.bit(d))) continue;
    auto stride = axis::stride_over(offset, e.coordinates.symbol(e.kernel, e.dims[d].coordinate));
    Expr extent = e.coordinates.list[e.dims[d].coordinate].extent;
    bool is_long = !extent.is_constant() || extent.constant() * byte_size(dtype) >= kLeastBytes;
    if (stride && stride->is_constant(1) && is_long) return d;
  }
  return std::nullopt;
}

}  // namespace

bool is_looked_up(Expr index) { return !loop::values_in(index).empty(); }

void emit_row(Emission& e, loop::ValueId id, Expr place) {
  const loop::Value& value = e.kernel.values[id];
  const loop::Buffer& buffer = e.kernel.buffers[value.buffer];
  auto [base, offset] = split(e, place);
  Tile start = index_text(e, base), at = index_text(e, offset);
  if (start.dims) return e.refuse("several addresses read from memory in a tile");
  std::optional<size_t> along = dimension_along(e, offset, at.dims, buffer.dtype);
  if (!along || !value.operands.empty())
    return e.refuse(fmt::format("single elements of {} at addresses read from memory", buffer.name));
  if (!is_floating(buffer.dtype))
    return e.refuse(fmt::format("rows of {}, which have no NaN for an index out of range", buffer.name));
  std::string good;
  for (loop::ValueId index : loop::values_in(base)) {
    if (e.values[index].valid.empty()) return e.refuse("an address that is not checked");
    good += (good.empty() ? "" : " & ") + e.values[index].valid;
  }
  const TileAxis& axis = e.dims[*along].axis;
  std::string mask = fmt::format("{} < tl.where({}, {}, 0)", axis.name, good, axis.extent);
  if (std::string others = e.mask(at.dims & ~e.bit(*along)); !others.empty())
    mask = fmt::format("({}) & {}", mask, others[0] == '(' ? others : "(" + others + ")");
  bool is_atom = at.text.find(' ') == std::string::npos;
  std::string pointer = fmt::format(fmt::runtime(is_atom ? "{}_ptr + {} + {}" : "{}_ptr + {} + ({})"),
                                    buffer.name, start.text, at.text);
  e.values[id] = {
      e.define(buffer.name, fmt::format("tl.load({}, mask={}, other=float(\"nan\"))", pointer, mask)),
      at.dims};
}

Tile checked_index(Emission& e, const loop::Value& value, std::string index, const std::string& bound) {
  if (value.op == ops::ScalarOp::wrap_index)
    index = e.define("wrapped", fmt::format("tl.where({0} < 0, {0} + {1}, {0})", index, bound));
  std::string good = e.define("good", fmt::format("({0} >= 0) & ({0} < {1})", index, bound));
  e.line(fmt::format("tl.device_assert({}, \"index out of range\")", good));
  Tile result{e.define(ops::to_text(value.op), fmt::format("tl.where({}, {}, 0)", good, index))};
  result.valid = good;
  return result;
}

}  // namespace kerf::codegen::triton
