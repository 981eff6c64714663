// Loads and stores.
#include <fmt/ranges.h>

#include "axis/linear.h"
#include "codegen/triton/emission.h"
#include "sym/simplify.h"
#include "sym/text.h"

namespace kerf::codegen::triton {

using loop::BufferMode;

namespace {

std::string pointer(const loop::Buffer& buffer, const Tile& index) {
  if (index.text == "0") return buffer.name + "_ptr";
  bool atom = index.text.find(' ') == std::string::npos;
  return fmt::format("{}_ptr + {}", buffer.name, atom ? index.text : "(" + index.text + ")");
}

std::string joined(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a + b;
  auto closed = [](const std::string& m) {
    return m.find(' ') != std::string::npos && m[0] != '(' ? "(" + m + ")" : m;
  };
  return closed(a) + " & " + closed(b);
}

// A masked load of what is known.
Tile where(Emission& e, const loop::Value& value, const Tile& known) {
  const Tile &wanted = e.values[value.operands[0]], &elsewhere = e.values[value.operands[1]];
  return {e.define("where", fmt::format("tl.where({}, {}, {})", wanted.text, known.text, elsewhere.text)),
          wanted.dims | known.dims | elsewhere.dims};
}

// The front end for Ascend walks such tiles element by element.
void refuse_backwards(Emission& e, const loop::Buffer& buffer, sym::Expr place) {
  if (e.dialect != Dialect::ascend) return;
  for (size_t c = 0; c < e.coordinates.list.size(); ++c) {
    if (!e.dim_of[c]) continue;
    auto stride = axis::stride_over(place, e.coordinates.symbol(e.kernel, c));
    if (stride && sym::range_of(*stride, e.facts).hi.value_or(0) < 0)
      e.refuse(fmt::format("{} is walked backwards along {}", buffer.name, e.coordinates.list[c].name));
  }
}

// Dimension i of the result is dimension order[i] of the tile.
std::string permuted(const std::string& tile, const std::vector<size_t>& order) {
  return fmt::format("tl.permute({}, ({}))", tile, fmt::join(order, ", "));
}

std::vector<size_t> inverse(const std::vector<size_t>& order) {
  std::vector<size_t> result(order.size());
  for (size_t i = 0; i < order.size(); ++i) result[order[i]] = i;
  return result;
}

// The tile's shape with its last dimension as pairs: `[BX0, BX1, 2]`.
std::string shape_of_pairs(const Emission& e, Dims dims) {
  std::string shape = e.shape(dims);
  return shape.substr(0, shape.size() - 1) + ", 2]";
}

// Both halves of what is loaded are known from here on.
void split_pair(Emission& e, loop::ValueId id, const Transfer& transfer, const std::string& text, Dims dims) {
  const loop::Value& value = e.kernel.values[id];
  const std::string& wish = e.kernel.buffers[value.buffer].name;
  std::string pair = e.define(wish + "_pair", text);
  Tile halves[] = {{e.names.give(wish), dims}, {e.names.give(wish), dims}};
  e.line(fmt::format("{}, {} = tl.split(tl.reshape({}, {}))", halves[0].text, halves[1].text, pair,
                     shape_of_pairs(e, dims)));
  e.values[id] = halves[transfer.half];
  sym::Expr second = sym::simplify(transfer.first + 1, e.facts);
  e.known[{value.buffer, transfer.first.node()}] = halves[0];
  e.known[{value.buffer, second.node()}] = halves[1];
}

std::string joined_pair(Emission& e, DType dtype, const Tile& first, const Tile& second, Dims dims) {
  Scalar zero = ops::identity(ops::ReduceOp::sum, dtype);
  Tile a = masked_by_identity(e, first, dims, 0, zero), b = masked_by_identity(e, second, dims, 0, zero);
  std::string shape = e.shape(dims);
  std::string flat = fmt::format("{}2 * {}", shape.substr(0, shape.rfind(e.dims.back().axis.block)),
                                 shape.substr(shape.rfind(e.dims.back().axis.block)));
  return e.define("pair", fmt::format("tl.reshape(tl.join({}, {}), {})", a.text, b.text, flat));
}

}  // namespace

void emit_load(Emission& e, loop::ValueId id) {
  const loop::Value& value = e.kernel.values[id];
  const loop::Buffer& buffer = e.kernel.buffers[value.buffer];
  sym::Expr place = over_coordinates(e, value.index);
  if (auto found = e.known.find({value.buffer, place.node()}); found != e.known.end()) {
    const Tile& tile = found->second;
    e.values[id] = value.operands.empty() ? tile : where(e, value, tile);
    return;
  }
  if (buffer.mode == BufferMode::local || buffer.mode == BufferMode::out)
    return e.refuse(
        fmt::format("{}[{}] is read back after it was written", buffer.name, sym::to_text(place)));
  if (e.dialect == Dialect::ascend && is_looked_up(place)) return emit_row(e, id, place);
  refuse_backwards(e, buffer, place);
  Transfer transfer = transfer_of(e, value.buffer, place, false);
  Tile index = index_text(e, transfer.index);
  std::string mask = transfer_mask(e, transfer, index.dims),
              other = buffer.dtype == DType::b1 ? "False" : "0";
  Dims dims = index.dims;
  if (!value.operands.empty()) {
    const Tile &wanted = e.values[value.operands[0]], &elsewhere = e.values[value.operands[1]];
    if (e.dialect == Dialect::ascend)
      return e.refuse(fmt::format("a read of {} under a mask of values", buffer.name));
    dims |= wanted.dims | elsewhere.dims;
    mask = joined(transfer_mask(e, transfer, dims), wanted.text);
    other = elsewhere.text;
  }
  std::string at = pointer(buffer, index);
  if (dims != index.dims) at = fmt::format("tl.broadcast_to({}, {})", at, e.shape(dims));
  std::string text = mask.empty() ? fmt::format("tl.load({})", at)
                                  : fmt::format("tl.load({}, mask={}, other={})", at, mask, other);
  if (transfer.is_paired) return split_pair(e, id, transfer, text, dims);
  if (!transfer.order.empty()) text = permuted(text, inverse(transfer.order));
  e.values[id] = {e.define(buffer.name, text), dims};
  if (value.operands.empty() && buffer.mode == BufferMode::in)
    e.known[{value.buffer, place.node()}] = e.values[id];
}

void emit_store(Emission& e, const loop::Store& store) {
  const loop::Buffer& buffer = e.kernel.buffers[store.buffer];
  if (store.mode == loop::StoreMode::add)
    return e.refuse(fmt::format("{} is added to at addresses that programs share (atomic)", buffer.name));
  if (e.dialect == Dialect::ascend && is_looked_up(store.index))
    return e.refuse("an address read from memory (gather or scatter)");
  if (e.values[store.value].in_float) return e.refuse("where on 64-bit integers that are stored");
  if (is_column_store(e, store)) return add_to_column(e, store);
  const Tile& value = e.values[store.value];
  e.known[{store.buffer, over_coordinates(e, store.index).node()}] = value;
  if (buffer.mode != BufferMode::local) store_tile(e, store, value);
}

void store_tile(Emission& e, const loop::Store& store, const Tile& value) {
  const loop::Buffer& buffer = e.kernel.buffers[store.buffer];
  refuse_backwards(e, buffer, over_coordinates(e, store.index));
  Transfer transfer = transfer_of(e, store.buffer, over_coordinates(e, store.index), true);
  Tile index = index_text(e, transfer.index);
  if (value.dims & ~index.dims)
    return e.refuse(fmt::format("several values of a tile go to one element of {}", buffer.name));
  std::string stored = value.text;
  if (transfer.is_paired) {
    auto [other, is_first] = e.halves.try_emplace({store.buffer, transfer.first.node()}, value);
    if (is_first) return;
    stored = joined_pair(e, buffer.dtype, transfer.half ? other->second : value,
                         transfer.half ? value : other->second, index.dims);
    e.halves.erase(other);
  } else if (!transfer.order.empty() && value.dims) {
    stored = permuted(stored, transfer.order);
  }
  std::string mask = transfer_mask(e, transfer, index.dims);
  e.line(mask.empty() ? fmt::format("tl.store({}, {})", pointer(buffer, index), stored)
                      : fmt::format("tl.store({}, {}, mask={})", pointer(buffer, index), stored, mask));
}

}  // namespace kerf::codegen::triton
