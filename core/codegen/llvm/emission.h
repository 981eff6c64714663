#pragma once
// The state of emitting one kernel as LLVM IR, and the functions of the folder's parts that share it.
//
// How loops become code
//   * The outermost grid loops are one flat counted loop over [begin, end).
//   * Inside a vector loop everything that depends on its axis is a vector of `lanes` elements; the rest stays scalar
//     and is broadcast where it meets a vector. A vector loop is emitted as a main loop over whole vectors and a tail
//     of masked iterations, the tail at the hardware's width so that it stays small.
//   * `mask`, when valid, says which lanes are active. Inactive lanes neither load nor store nor report errors nor
//     count in reductions. Code under a mask runs only when at least one lane is active, so scalar work in it is safe.
//   * A bool value is an i1 (i8 in memory), f16 and bf16 values are their bits in an i16.
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "codegen/llvm/ir.h"
#include "loop/kernel.h"
#include "target/cpu.h"

namespace kerf::codegen {

Prim value_prim(DType dtype);
Prim storage_prim(DType dtype);
inline bool is_signed(DType dtype) { return dtype != DType::u8 && dtype != DType::b1; }
Operand constant_of(const Scalar& scalar);

// Whether an axis runs in vectors (a vector role of one lane is a serial loop).
inline bool is_vector_axis(const loop::Axis& axis) {
  return axis.role == loop::Role::vector && axis.lanes > 1;
}

inline constexpr int64_t kCacheLine = 64;  // bytes

// Memory of the local buffers: on the stack while they fit in kStackBytes, else in the thread's scratch.
inline constexpr int64_t kStackBytes = 16 << 10;
struct LocalPlace {
  loop::BufferId buffer;
  int64_t elements = 0;
  bool on_stack = true;
  int64_t offset = 0;  // in scratch
};
struct LocalLayout {
  std::vector<LocalPlace> places;
  int64_t scratch_bytes = 0;
};

struct Emission {
  Emission(const loop::Kernel& k, const target::CpuTarget& t, Module& module)
      : kernel(k), target(t), b(module), values(k.values.size()), buffers(k.buffers.size()) {}

  const loop::Kernel& kernel;
  const target::CpuTarget& target;
  Builder b;
  sym::Facts facts;
  LocalLayout locals;
  std::vector<bool> varying;                  // per value: a vector inside its vector loop
  IdVector<loop::ValueId, Operand> values;    // where visible
  IdVector<loop::BufferId, Operand> buffers;  // addresses
  std::unordered_map<const sym::Node*, Operand>
      symbols;                  // sizes and axes; for the vector axis that of lane 0
  std::vector<sym::Expr> nest;  // axes of the loops around, outermost first
  int lanes = 0;                // of the vector loop around, 0 outside
  sym::Expr lane_axis;          // its axis
  Operand mask;
  // Loads whose values stand ready in registers: those of a tile that was transposed.
  std::unordered_map<uint32_t, Operand> preloaded;
  bool concurrent = false;    // iterations run at the same time: store_add is atomic
  bool has_streamed = false;  // a non-temporal store was emitted
  bool prefetches = false;    // memory is touched ahead of its use
  Operand error;

  Operand value(loop::ValueId id) const { return values[id]; }
};

// plan.cpp: decisions before any text.
std::optional<Unsupported> check_supported(const loop::Kernel& kernel);
LocalLayout place_locals(const loop::Kernel& kernel);
std::vector<bool> varying_values(const loop::Kernel& kernel);

// loops.cpp
using Carried = std::vector<Operand>;
using LoopBody = std::function<Carried(Carried)>;
// A loop in blocks: each block starts from `fresh` values, and `join` folds what it ends with into the values that are
// carried from block to block. Long sums keep their accuracy this way.
struct Blocks {
  int64_t iterations = 0;  // of a block
  std::function<Carried()> fresh;
  std::function<Carried(const Carried& carried, const Carried& block)> join;
};
// Runs body once per iteration of the axis, with its symbol bound; values are carried from iteration to iteration.
Carried run_axis(Emission& e, loop::AxisId axis, Carried carried, const LoopBody& body,
                 const Blocks* blocks = nullptr);
// The same for an axis that is no vector, as a loop whatever its role says.
Carried run_serial(Emission& e, loop::AxisId axis, Carried carried, const LoopBody& body,
                   const Blocks* blocks = nullptr);
// Runs body for the iterations [begin, end) of the flattened grid axes, outermost first; without axes just once.
// begin < end.
void run_grid(Emission& e, std::span<const loop::AxisId> axes, const Operand& begin, const Operand& end,
              const std::function<void()>& body);
void emit_block(Emission& e, const loop::Block& block);
void emit_statement(Emission& e, const loop::Stmt& statement);
// Emits body where the i1 condition holds and joins again; with a result, `otherwise` stands for it elsewhere.
void when(Emission& e, const Operand& condition, const std::function<void()>& body);
Operand when(Emission& e, const Operand& condition, const Operand& otherwise,
             const std::function<Operand()>& body);
Operand any_lane(Emission& e, const Operand& mask);

// index.cpp: sym expressions as i64 code.
bool is_varying(const Emission& e, sym::Expr expr);
// The constant or uniform difference between neighbouring lanes, if there is one (0: uniform).
std::optional<sym::Expr> lane_stride(const Emission& e, sym::Expr expr);
Operand scalar_index(Emission& e, sym::Expr expr);  // of lane 0 inside a vector loop
Operand lane_index(Emission& e, sym::Expr expr);    // scalar when uniform, else per lane
// The address of base[scalar_index]. A pointer for each loop that the index steps with, outermost first: LICM moves them out,
// so that an innermost loop has its own step left, as LLVM's loop strength reduction would have it.
Operand address_of(Emission& e, Prim prim, const Operand& base, sym::Expr index);

// memory.cpp
Operand emit_load(Emission& e, const loop::Value& value, std::string_view name);
void emit_store(Emission& e, const loop::Store& store);
// What a load gives, from the element (or lanes) as it lies in memory.
Operand from_storage(Emission& e, DType dtype, const Operand& raw, std::string_view name);

// prefetch.cpp
// Whether a kernel touches more memory than lies in a core's cache anyway.
bool worth_prefetching(const loop::Kernel& kernel);
// Beside a vector load of `address` (whole lanes one after the other): asks for what a later iteration will load.
void prefetch_ahead(Emission& e, const loop::Value& load, const Operand& address);

// transpose.cpp
// An unrolled loop around a vector loop is a square tile: whole tiles read what lies across the lanes in rows, and transpose
// it in registers. False if `loop` is no such tile and nothing was emitted.
bool emit_tile(Emission& e, const loop::Loop& loop);

// reduce.cpp
void emit_reduce(Emission& e, const loop::Reduce& reduce);

// indexed_fold.cpp: folds of values with their indices.
struct Indexed {
  Operand value, index;
};
// If the yielded index grows from each iteration of the reduce to the next: the first one, INT64_MAX if there is none. It is an
// i32 where that holds them all.
std::optional<Operand> start_if_in_order(Emission& e, const loop::Reduce& reduce, loop::ValueId yield);
// Whether `fresh` replaces `best`; the indices are looked at unless it is known to come later (`in_order`).
Operand replaces(Emission& e, ops::ReduceOp op, DType dtype, const Indexed& fresh, const Indexed& best,
                 bool in_order);

// extremum.cpp: the smaller or larger of two, NaN if either is, -0.0 below 0.0.
Operand emit_minimum(Emission& e, DType dtype, const Operand& a, const Operand& c);
Operand emit_maximum(Emission& e, DType dtype, const Operand& a, const Operand& c);

// scalar.cpp, integer.cpp, convert.cpp: scalar operations on scalars or vectors.
Operand emit_apply(Emission& e, loop::ValueId id, const loop::Value& value);
struct Application {  // one scalar op at work
  ops::ScalarOp op;
  DType operand_type;  // of the first operand
  DType type;          // of the result
  std::vector<Operand> x;
  loop::ValueId id;  // for error reports
};
Operand emit_integer_division(Emission& e, const Application& a);
Operand emit_integer_power(Emission& e, const Application& a);
Operand emit_index_check(Emission& e, const Application& a);
Operand emit_random(Emission& e, const Application& a);
Operand emit_cast(Emission& e, const Application& a);
// f16 and bf16 bits as f32, and back with rounding.
bool is_narrow(DType dtype);
Operand widen(Emission& e, DType from, const Operand& bits);
Operand narrow(Emission& e, DType to, const Operand& x);
// Scalar code run for every lane, in a function that the module holds once under `name` and the argument type.
using ScalarBody = std::function<Operand(Builder&, std::span<const Operand>)>;
Operand each_lane(Emission& e, std::string_view name, std::span<const Operand> arguments, Prim result,
                  const ScalarBody& body);
// Calls the function `symbol` for every lane.
Operand call_per_lane(Emission& e, std::string_view symbol, std::vector<Operand> arguments);

}  // namespace kerf::codegen
