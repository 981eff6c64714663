#pragma once
// The state of emitting one kernel as a Triton function, and the functions of the folder's parts that share it.
#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "axis/coordinates.h"
#include "codegen/triton/emit.h"
#include "codegen/triton/names.h"
#include "codegen/triton/transfer.h"
#include "loop/kernel.h"
#include "sym/facts.h"

namespace kerf::codegen::triton {

// A set of tile dimensions, a bit each.
using Dims = uint32_t;

// What a value is in the text: an atom (a name or a literal), and the dimensions along which it differs. Its shape has the block
// in those and 1 in the others; without any it is a scalar.
struct Tile {
  std::string text;
  Dims dims = 0;
  std::optional<Scalar> literal = {};
  bool is_narrow = false;  // an i64 that the text has in 32 bits: an index, on Ascend
  bool in_float = false;   // an i64 that the text has in f32, for comparisons (integers.cpp)
  std::string valid = {};  // of a checked index, on Ascend: the name of whether it was in range
};

struct Dim {
  size_t coordinate;
  TileAxis axis;
  bool overhangs = false;  // the block does not divide the extent, or not provably
};

struct Emission {
  // `taken`: the names that are taken.
  Emission(const loop::Kernel& k, Dialect d, Names taken);

  const loop::Kernel& kernel;
  Dialect dialect;
  sym::Facts facts;
  axis::Coordinates coordinates;
  std::vector<Dim> dims;                      // in tile order
  std::vector<std::optional<size_t>> dim_of;  // per coordinate
  std::vector<std::string> extents;           // per coordinate: a parameter or an expression
  bool wide = false;                          // indices need 64 bits
  Names names;
  Places places;
  std::vector<Lanes> lanes;  // beside those of the dimensions themselves

  IdVector<loop::ValueId, Tile> values;
  // What stands in memory where it was just written, or read: buffer and index over coordinates.
  std::map<std::pair<loop::BufferId, const sym::Node*>, Tile> known;
  struct Column {
    std::string accumulator;
    Dims dims = 0;  // of the accumulator
    Dims rows = 0;  // summed at the end
  };
  std::map<loop::BufferId, Column> columns;                            // of the loop around
  std::map<std::pair<loop::BufferId, const sym::Node*>, Tile> halves;  // of pairs whose other half is to come

  std::vector<std::string> library;
  bool uses_libdevice = false;
  bool always_loops = false;  // over tiles, although there may be one: other parts have more

  // --- text
  void line(const std::string& text) { lines.push_back(std::string(indent * 4, ' ') + text); }
  // Defines a name for an expression.
  std::string define(std::string_view wish, const std::string& text);
  std::vector<std::string> lines;
  size_t indent = 1;

  // --- refusal: the first reason stands, and the text is thrown away
  void refuse(std::string reason);
  std::optional<Unsupported> refusal;

  // --- tiles
  Dims bit(size_t dim) const { return Dims(1) << dim; }
  Dims overhanging(Dims of) const;
  // Of values (those of transfers: transfer.h) `(x0 < X0) & (r < R)`; empty when nothing overhangs. Ascend compares in f32,
  // which its vector unit does; extents are below 2^24 there.
  std::string mask(Dims of) const;
  std::string shape(Dims of) const;        // `[BX0, 1]`
  std::string subscript(Dims kept) const;  // `[:, None]`
  // Defines the indices of a dimension, and its other lanes: from `start`, or from 0 if it is empty.
  void define_range(size_t dim, std::string start);
  void need(const std::string& function);  // of the library
};

std::string dtype_text(DType dtype);
std::string literal_text(const Scalar& scalar);

// index.cpp: an index over coordinates; such an expression as text, and the dimensions it differs along.
sym::Expr over_coordinates(const Emission& e, sym::Expr index);
Tile index_text(Emission& e, sym::Expr place);

// memory.cpp
void emit_load(Emission& e, loop::ValueId id);
void emit_store(Emission& e, const loop::Store& store);
// The line that stores a tile, masked where it overhangs.
void store_tile(Emission& e, const loop::Store& store, const Tile& value);

// rows.cpp
// Whether an address mentions values from memory.
bool is_looked_up(sym::Expr index);
// The load of a row at `place` (over coordinates), which does.
void emit_row(Emission& e, loop::ValueId id, sym::Expr place);
// check_index and wrap_index of a scalar.
Tile checked_index(Emission& e, const loop::Value& value, std::string index, const std::string& bound);

// scalar.cpp
Tile emit_apply(Emission& e, const loop::Value& value);

// integers.cpp: brings integers to the forms that Ascend computes with; says in `result` which one comes out.
void fit_integers(Emission& e, const loop::Value& value, std::vector<Tile>& x, Tile& result);

// fold.cpp
void emit_reduce(Emission& e, const loop::Reduce& reduce);
// The tile folded along `over`, as an expression.
std::string folded(Emission& e, ops::ReduceOp op, const Tile& tile, DType dtype, Dims over);
// A name for the tile spread over `dims`, with the identity outside the domain along `masked`.
Tile masked_by_identity(Emission& e, const Tile& tile, Dims dims, Dims masked, const Scalar& identity);
// An accumulator's start; bools are counted as integers.
std::string accumulator(Emission& e, Dims dims, const Scalar& identity);
// nan_of_folds.cpp: what is written is NaN where the row has one, even if the row's maximum passes over it.
bool shows_nan_anyway(Emission& e, const loop::Reduction& maximum);
// One step of a fold.
std::string combined(ops::ReduceOp op, DType dtype, const std::string& a, const std::string& b);

// carried.cpp: a buffer through which one iteration of an inner loop reads what another wrote.
std::optional<std::string> carried_buffer(const loop::Kernel& kernel, const axis::Coordinates& coordinates);

// columns.cpp: rows of memory to which the iterations of a loop add.
// The value that the store adds to what stands at its place, if that is what it does.
std::optional<loop::ValueId> added_to_column(const loop::Kernel& kernel, const loop::Store& store);
// The stores in `loop` that add to what stands at their place, one for each buffer that is not open yet.
std::vector<const loop::Store*> columns_of(const Emission& e, const loop::Loop& loop);
bool is_column_store(const Emission& e, const loop::Store& store);
// A value that only such a store uses.
bool belongs_to_column(const Emission& e, const loop::Value& value);
// A loop that clears such rows, and nothing else.
bool clears_columns(const Emission& e, const loop::Stmt& stmt, std::span<const loop::Store* const> columns);
void open_column(Emission& e, const loop::Store& store);
void add_to_column(Emission& e, const loop::Store& store);
void close_column(Emission& e, const loop::Store& store);

// statements.cpp
void emit_block(Emission& e, const loop::Block& block);
// Opens the loops over `axes` that are not whole tiles, runs body, closes them.
void run_axes(Emission& e, std::span<const loop::AxisId> axes, const std::function<void()>& body);

}  // namespace kerf::codegen::triton
