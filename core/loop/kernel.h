#pragma once
// The loop IR: a Kernel is a tree of few statements over buffers, with values in a flat table.
//
// Meaning
//   * A buffer is flat memory of one dtype; `shape` documents it and gives the element count (the product).
//     Accesses address it by a linear element index, an integer expression over axes, sizes and integer values.
//   * A value is defined by exactly one `Define` or one `Reduction` and is visible to the statements after it in
//     the same block and in blocks nested in those. Inside loops it is computed per iteration.
//   * A `Loop` runs its body for axis = 0 .. extent-1. The extent may mention sizes and outer axes (a split axis:
//     `min(64, n - 64*po)`). Extents <= 0 run nothing.
//   * A `Reduce` is a loop nest over its axes that folds what its body yields; the results are visible after it.
//     Over an empty domain the results are the identities.
//   * A load under a mask reads memory only where the mask is true and gives `other` elsewhere.
//   * `store` overwrites; `store_add` adds to what is there (one thread: in order; grid axes: atomic).
//   * `local` buffers belong to one iteration of the grid loops: nothing survives to the next one.
//   * A role says how a loop is run and never changes what it computes: every role means the same as `serial`,
//     except that iterations of a grid loop may run at the same time (they must be independent but for store_add).
// Contract: value semantics, copyable; no names as keys; the Context must outlive the kernel. verify.h lists the
// invariants.
#include <string>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/ids.h"
#include "ops/reduce_op.h"
#include "ops/scalar_op.h"
#include "sym/expr.h"
#include "sym/facts.h"

namespace kerf::loop {

using AxisId = Id<struct AxisTag>;
using ValueId = Id<struct ValueTag>;
using BufferId = Id<struct BufferTag>;

// serial: in order. grid: spread over threads or programs. vector: `lanes` iterations at a time (everything in the
// body is then a vector, nested loops stay serial; at most one vector axis on any path). unrolled: copied. tile: `lanes`
// iterations at a time as one dimension of a tile; any number of axes, and for outermost loops the tiles are a grid.
enum class Role : uint8_t { serial, grid, vector, unrolled, tile };
inline constexpr int kMostTileLanes = 1 << 20;

struct Axis {
  sym::Expr symbol;  // SymbolKind::axis; its name is the axis's name
  sym::Expr extent;
  Role role = Role::serial;
  int lanes = 0;  // roles vector and tile
};

enum class BufferMode : uint8_t { in, out, inout, local };

struct Buffer {
  std::string name;
  DType dtype;
  std::vector<sym::Expr> shape;
  BufferMode mode = BufferMode::in;
  bool non_temporal =
      false;  // stores bypass the cache: set by the scheduler for large outputs not read again soon
};

enum class ValueKind : uint8_t {
  constant,  // `literal`
  index,     // an integer expression over axes and sizes, as i64
  load,      // buffer[index], or with operands (mask, other)
  apply,     // scalar op over operands
  reduced,   // result of a Reduction
};

struct Value {
  ValueKind kind;
  DType dtype;
  ops::ScalarOp op = ops::ScalarOp::add;  // apply
  Scalar literal = {};                    // constant
  sym::Expr index;                        // index, load
  BufferId buffer;                        // load
  std::vector<ValueId> operands;          // apply; masked load: {mask, other}
};

struct Loop;
struct Reduce;
struct Guard;
struct Define {
  ValueId value;
};
enum class StoreMode : uint8_t { assign, add };
struct Store {
  BufferId buffer;
  sym::Expr index;
  ValueId value;
  StoreMode mode = StoreMode::assign;
};
struct Barrier {};  // all iterations of the grid reach this point (not on the cpu target)

using Stmt = std::variant<Define, Store, Loop, Reduce, Guard, Barrier>;
using Block = std::vector<Stmt>;

struct Loop {
  AxisId axis;
  Block body;
};

struct Reduction {
  ops::ReduceOp op;
  ValueId result;
  std::vector<ValueId> yields;  // as many as the op's row says
};

struct Reduce {
  std::vector<AxisId> axes;  // outermost first
  std::vector<Reduction> parts;
  Block body;
};

// Runs the body where `condition` (a bool value) is true.
struct Guard {
  ValueId condition;
  Block body;
};

struct Size {
  sym::Expr symbol;  // SymbolKind::size
  sym::Range range;
  sym::Modulus modulus;
};

struct Kernel {
  std::string name;
  sym::Context* context = nullptr;
  std::vector<Size> sizes;
  IdVector<BufferId, Buffer> buffers;
  IdVector<AxisId, Axis> axes;
  IdVector<ValueId, Value> values;
  Block body;
  std::vector<std::string> sources;  // user source lines it came from, for reports; not part of the text hash
};

// Facts about sizes and all axes whose extent is known there.
sym::Facts facts_of(const std::vector<Size>& sizes);
sym::Facts facts_of(const Kernel& kernel);

// Element count of a buffer.
sym::Expr element_count(const Kernel& kernel, BufferId buffer);

}  // namespace kerf::loop
