// Column sums beside rows (sched/columns.h): a row of memory is cleared, and each iteration of a loop adds to it.
//
//   for r1 < 768                         c = tl.full([1, BR], 0.0, ...)
//     store c[r1], 0.0                   for ...:
//   for c0 < 16                            c = c + ...
//     ...                                tl.store(c_ptr + ..., tl.sum(c, axis=0)[None, :])
//     store c[r0], load c[r0] + v
#include <algorithm>

#include "codegen/triton/emission.h"
#include "loop/walk.h"

namespace kerf::codegen::triton {

using loop::ValueKind;

std::optional<loop::ValueId> added_to_column(const loop::Kernel& kernel, const loop::Store& store) {
  const loop::Value& sum = kernel.values[store.value];
  if (sum.kind != ValueKind::apply || sum.op != ops::ScalarOp::add) return std::nullopt;
  const loop::Value& before = kernel.values[sum.operands[0]];
  if (before.kind != ValueKind::load || before.buffer != store.buffer || before.index != store.index)
    return std::nullopt;
  if (kernel.buffers[store.buffer].mode != loop::BufferMode::out) return std::nullopt;
  return sum.operands[1];
}

std::vector<const loop::Store*> columns_of(const Emission& e, const loop::Loop& loop) {
  std::vector<const loop::Store*> result;
  loop::walk(loop.body, [&](const loop::Stmt& stmt, const loop::Path&) {
    const auto* store = std::get_if<loop::Store>(&stmt);
    if (!store || !added_to_column(e.kernel, *store)) return;
    bool is_open = e.columns.contains(store->buffer);  // by a loop further out
    bool is_there = std::any_of(result.begin(), result.end(),
                                [&](const loop::Store* other) { return other->buffer == store->buffer; });
    if (!is_open && !is_there) result.push_back(store);
  });
  return result;
}

bool is_column_store(const Emission& e, const loop::Store& store) {
  return e.columns.contains(store.buffer) && added_to_column(e.kernel, store).has_value();
}

bool belongs_to_column(const Emission& e, const loop::Value& value) {
  if (value.kind == ValueKind::load) return e.columns.contains(value.buffer);
  if (value.kind != ValueKind::apply || value.op != ops::ScalarOp::add) return false;
  const loop::Value& before = e.kernel.values[value.operands[0]];
  return before.kind == ValueKind::load && e.columns.contains(before.buffer);
}

bool clears_columns(const Emission& e, const loop::Stmt& stmt, std::span<const loop::Store* const> columns) {
  if (!std::holds_alternative<loop::Loop>(stmt)) return false;
  bool only = true, any = false;
  loop::walk({stmt}, [&](const loop::Stmt& inner, const loop::Path&) {
    if (std::holds_alternative<loop::Reduce>(inner)) only = false;
    const auto* store = std::get_if<loop::Store>(&inner);
    if (!store) return;
    any = true;
    const loop::Value& value = e.kernel.values[store->value];
    bool is_column = std::any_of(columns.begin(), columns.end(),
                                 [&](const loop::Store* column) { return column->buffer == store->buffer; });
    only = only && is_column && value.kind == ValueKind::constant;
  });
  return only && any;
}

void open_column(Emission& e, const loop::Store& store) {
  std::string name = e.kernel.buffers[store.buffer].name;
  Emission::Column column{e.names.give(name)};
  for (size_t d = 0; d < e.dims.size(); ++d)
    if (e.coordinates.list[e.dims[d].coordinate].kind == axis::CoordinateKind::row) column.rows |= e.bit(d);
  Dims place = index_text(e, over_coordinates(e, store.index)).dims;
  for (size_t d = 0; d < e.dims.size(); ++d)
    if ((place & e.bit(d)) && !e.dims[d].axis.whole &&
        e.coordinates.list[e.dims[d].coordinate].kind == axis::CoordinateKind::inner)
      e.refuse(fmt::format("the sums of {} do not fit a tile", name));
  column.dims = place | column.rows;
  Scalar zero = ops::identity(ops::ReduceOp::sum, e.kernel.buffers[store.buffer].dtype);
  e.line(fmt::format("{} = {}", column.accumulator, accumulator(e, column.dims, zero)));
  e.columns.emplace(store.buffer, std::move(column));
}

void add_to_column(Emission& e, const loop::Store& store) {
  const Emission::Column& column = e.columns.at(store.buffer);
  loop::ValueId value = *added_to_column(e.kernel, store);
  DType dtype = e.kernel.values[value].dtype;
  Tile share = masked_by_identity(e, e.values[value], column.dims, column.rows,
                                  ops::identity(ops::ReduceOp::sum, dtype));
  e.line(fmt::format("{0} = {0} + {1}", column.accumulator, share.text));
}

void close_column(Emission& e, const loop::Store& store) {
  const Emission::Column column = e.columns.at(store.buffer);
  e.columns.erase(store.buffer);
  DType dtype = e.kernel.buffers[store.buffer].dtype;
  Tile rows{column.accumulator, column.dims};
  std::string sum = e.define("sum", folded(e, ops::ReduceOp::sum, rows, dtype, column.rows));
  store_tile(e, store, {sum, column.dims & ~column.rows});
}

}  // namespace kerf::codegen::triton
