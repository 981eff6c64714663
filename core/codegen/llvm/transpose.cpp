#include <algorithm>

#include "axis/linear.h"
#include "codegen/llvm/emission.h"
#include "loop/walk.h"

// Square tiles, n by n for vectors of n lanes:
//
//   for i < n unrolled              i: along x in memory
//     for j < n vector n            j: the lanes, along y
//       %0 = load x[i + S*j]        n vectors of x along i, transposed, give the lanes of every i
//       store y[j + T*i], %0
//
// A tile at an edge, with fewer rows or lanes, gathers.

namespace kerf::codegen {

namespace {

constexpr size_t kMaxStatements = 24;  // of the body, which is copied for each row

struct SquareTile {
  const loop::Loop* lanes = nullptr;  // the vector loop
  std::vector<loop::ValueId> loads;   // of its body, along the rows
};

bool is_stored(const loop::Kernel& kernel, loop::BufferId buffer) {
  bool stored = false;
  loop::walk(kernel.body, [&](const loop::Stmt& stmt, const loop::Path&) {
    const auto* store = std::get_if<loop::Store>(&stmt);
    stored = stored || (store && store->buffer == buffer);
  });
  return stored;
}

// An index that the lanes step through by something uniform other than 1, and the rows by 1.
bool runs_along(sym::Expr index, sym::Expr row, sym::Expr lane) {
  std::vector<sym::Expr> symbols;
  sym::collect_symbols(index, symbols);
  for (sym::Expr s : symbols)
    if (s.symbol().kind == sym::SymbolKind::value) return false;
  auto along = axis::stride_over(index, row), across = axis::stride_over(index, lane);
  return along && along->is_constant(1) && across && !across->is_constant(0) && !across->is_constant(1);
}

std::optional<SquareTile> square_tile(const Emission& e, const loop::Loop& rows) {
  if (e.lanes != 0 || e.kernel.axes[rows.axis].role != loop::Role::unrolled || rows.body.size() != 1)
    return std::nullopt;
  SquareTile tile{std::get_if<loop::Loop>(&rows.body.front()), {}};
  if (!tile.lanes || !is_vector_axis(e.kernel.axes[tile.lanes->axis])) return std::nullopt;
  if (tile.lanes->body.size() > kMaxStatements) return std::nullopt;
  for (const loop::Stmt& stmt : tile.lanes->body) {
    if (std::holds_alternative<loop::Store>(stmt)) continue;
    const auto* define = std::get_if<loop::Define>(&stmt);
    if (!define) return std::nullopt;
    const loop::Value& value = e.kernel.values[define->value];
    if (value.kind == loop::ValueKind::load && value.operands.empty() && !is_stored(e.kernel, value.buffer) &&
        runs_along(value.index, e.kernel.axes[rows.axis].symbol, e.kernel.axes[tile.lanes->axis].symbol))
      tile.loads.push_back(define->value);
  }
  if (tile.loads.empty()) return std::nullopt;
  return tile;
}

// log2(n) perfect shuffles of the rows: each moves one bit of the row number into the lane number and one back.
std::vector<Operand> transposed(Emission& e, std::vector<Operand> rows) {
  size_t n = rows.size();
  std::vector<int> low(n), high(n);
  for (size_t i = 0; i < n / 2; ++i) {
    low[2 * i] = static_cast<int>(i), low[2 * i + 1] = static_cast<int>(n + i);
    high[2 * i] = static_cast<int>(n / 2 + i), high[2 * i + 1] = static_cast<int>(n + n / 2 + i);
  }
  for (size_t round = 1; round < n; round *= 2) {
    std::vector<Operand> next;
    for (size_t i = 0; i < n / 2; ++i) {
      next.push_back(e.b.shuffle(rows[i], rows[i + n / 2], low, "low"));
      next.push_back(e.b.shuffle(rows[i], rows[i + n / 2], high, "high"));
    }
    rows = std::move(next);
  }
  return rows;
}

void emit_whole_tile(Emission& e, const SquareTile& tile, sym::Expr row, sym::Expr lane) {
  const int n = e.kernel.axes[tile.lanes->axis].lanes;
  Operand zero = int_constant(Prim::i64, 0);
  std::vector<std::vector<Operand>> columns;
  e.symbols[row.node()] = zero;
  for (loop::ValueId id : tile.loads) {
    const loop::Value& value = e.kernel.values[id];
    Prim prim = storage_prim(value.dtype);
    std::vector<Operand> vectors;
    for (int j = 0; j < n; ++j) {
      e.symbols[lane.node()] = int_constant(Prim::i64, j);
      Operand address = address_of(e, prim, e.buffers[value.buffer], value.index);
      vectors.push_back(e.b.load({prim, n}, address, byte_size(value.dtype), "row"));
    }
    columns.push_back(transposed(e, std::move(vectors)));
  }
  e.lanes = n;
  e.lane_axis = lane;
  e.symbols[lane.node()] = zero;
  for (int i = 0; i < n; ++i) {
    e.symbols[row.node()] = int_constant(Prim::i64, i);
    for (size_t load = 0; load < tile.loads.size(); ++load) {
      loop::ValueId id = tile.loads[load];
      e.preloaded[id.index] =
          from_storage(e, e.kernel.values[id].dtype, columns[load][static_cast<size_t>(i)], "column");
    }
    emit_block(e, tile.lanes->body);
  }
  e.preloaded.clear();
  e.lanes = 0;
  e.lane_axis = {};
}

// A loop over the rows: unrolled, the loops over lanes would be most of the kernel.
void emit_part_of_tile(Emission& e, const loop::Loop& rows, const SquareTile& tile) {
  run_serial(e, rows.axis, {}, [&](Carried) {
    return run_axis(e, tile.lanes->axis, {}, [&](Carried) {
      emit_block(e, tile.lanes->body);
      return Carried{};
    });
  });
}

}  // namespace

bool emit_tile(Emission& e, const loop::Loop& rows) {
  std::optional<SquareTile> tile = square_tile(e, rows);
  if (!tile) return false;
  const loop::Axis& row = e.kernel.axes[rows.axis];
  const loop::Axis& lane = e.kernel.axes[tile->lanes->axis];
  Builder& b = e.b;
  const int n = lane.lanes;
  if (row.extent.is_constant(n) && lane.extent.is_constant(n)) {
    emit_whole_tile(e, *tile, row.symbol, lane.symbol);
    return true;
  }
  Operand whole;
  for (sym::Expr extent : {row.extent, lane.extent}) {
    if (extent.is_constant(n)) continue;
    Operand fits = b.compare("icmp eq", scalar_index(e, extent), int_constant(Prim::i64, n), "fits");
    whole = whole.valid() ? b.binary("and", whole, fits, "whole") : fits;
  }
  Label inside = b.new_label("tile"), edge = b.new_label("edge"), join = b.new_label("tile.done");
  b.branch(whole, inside, edge);
  b.start(inside);
  emit_whole_tile(e, *tile, row.symbol, lane.symbol);
  b.branch(join);
  b.start(edge);
  emit_part_of_tile(e, rows, *tile);
  b.branch(join);
  b.start(join);
  return true;
}

}  // namespace kerf::codegen
