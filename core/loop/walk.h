#pragma once
// Walks and rewrites of statement trees, and who uses what. A pass that looks at or changes kernels is written
// with these and lambdas; nothing here decides anything.
//
//   walk(block, pre)           every statement with the statements around it, outer first, in program order
//   walk(block, pre, post)     the same, and `post` once the body is done
//   rewrite_block(block, f)    bottom-up: f(statement, out) appends to `out` what takes the statement's place
//   for_each_stmt(block, f)    every statement, outer first, to be changed in place
//   rewrite_expressions(k, f)  every index expression of the kernel: axis extents, values, stores
//   for_each_access(k, f)      f(buffer, index, path, is_store): every load and store, in program order
//   uses_of(k, statement)      the values that one statement itself reads, its body excluded
//
// Walks must not change the tree they walk.
#include <concepts>
#include <span>
#include <utility>
#include <vector>

#include "loop/kernel.h"

namespace kerf::loop {

// The loops, reduces and guards around a statement, outermost first.
using Path = std::vector<const Stmt*>;

// The body of a loop, reduce or guard; null for the others.
const Block* body_of(const Stmt& stmt);
Block* body_of(Stmt& stmt);

// The axes that a loop or reduce runs over; empty for the others.
std::span<const AxisId> axes_of(const Stmt& stmt);

// All axes of the statements of a path, outermost first.
std::vector<AxisId> axes_of(const Path& path);

namespace detail {

template <class Pre, class Post>
void walk(const Block& block, Path& path, Pre& pre, Post& post) {
  for (const Stmt& stmt : block) {
    pre(stmt, std::as_const(path));
    if (const Block* body = body_of(stmt)) {
      path.push_back(&stmt);
      walk(*body, path, pre, post);
      path.pop_back();
    }
    post(stmt, std::as_const(path));
  }
}

}  // namespace detail

template <std::invocable<const Stmt&, const Path&> Pre, std::invocable<const Stmt&, const Path&> Post>
void walk(const Block& block, Pre&& pre, Post&& post) {
  Path path;
  detail::walk(block, path, pre, post);
}

template <std::invocable<const Stmt&, const Path&> Pre>
void walk(const Block& block, Pre&& pre) {
  walk(block, pre, [](const Stmt&, const Path&) {});
}

// Statements arrive with their body already rewritten.
template <std::invocable<Stmt, Block&> Rewrite>
Block rewrite_block(Block block, Rewrite&& rewrite) {
  Block out;
  out.reserve(block.size());
  for (Stmt& stmt : block) {
    if (Block* body = body_of(stmt)) *body = rewrite_block(std::move(*body), rewrite);
    rewrite(std::move(stmt), out);
  }
  return out;
}

// Every statement of a block and the blocks in it, outer before inner, to be changed in place.
template <std::invocable<Stmt&> Change>
void for_each_stmt(Block& block, Change&& change) {
  for (Stmt& stmt : block) {
    change(stmt);
    if (Block* body = body_of(stmt)) for_each_stmt(*body, change);
  }
}

template <std::invocable<sym::Expr> Rewrite>
void rewrite_expressions(Kernel& kernel, Rewrite&& rewrite) {
  for (Axis& axis : kernel.axes) axis.extent = rewrite(axis.extent);
  for (Value& value : kernel.values)
    if (value.index.valid()) value.index = rewrite(value.index);
  for_each_stmt(kernel.body, [&](Stmt& stmt) {
    if (auto* store = std::get_if<Store>(&stmt)) store->index = rewrite(store->index);
  });
}

template <std::invocable<BufferId, sym::Expr, const Path&, bool> Visit>
void for_each_access(const Kernel& kernel, Visit&& visit) {
  walk(kernel.body, [&](const Stmt& stmt, const Path& path) {
    if (const auto* store = std::get_if<Store>(&stmt)) {
      visit(store->buffer, store->index, path, true);
    } else if (const auto* define = std::get_if<Define>(&stmt)) {
      const Value& value = kernel.values[define->value];
      if (value.kind == ValueKind::load) visit(value.buffer, value.index, path, false);
    }
  });
}

// The chain of perfectly nested grid loops that begins with `stmt`, outermost first; empty if it is not one.
std::vector<const Loop*> grid_loops(const Kernel& kernel, const Stmt& stmt);

// The flattened extent of the kernel's grid loops; 1 without any. Kernels with barriers have several grids (CHECK).
sym::Expr grid_extent(const Kernel& kernel);

// The integer values that an expression mentions.
std::vector<ValueId> values_in(sym::Expr expr);

// What computing `value` reads: its operands, then the values in its index.
std::vector<ValueId> operands_of(const Value& value);

// The values that a statement itself reads: a define's operands, what a store stores and indexes by, a
// guard's condition, a reduce's yields (read at the end of its body).
std::vector<ValueId> uses_of(const Kernel& kernel, const Stmt& stmt);

// The values that a statement defines for the statements after it.
std::vector<ValueId> defined_by(const Stmt& stmt);

// How often each value is used in the whole kernel.
IdVector<ValueId, int> use_counts(const Kernel& kernel);

// Whether computing the value may report an error (integer division, an index check): it is then kept
// although nothing reads it, and not moved to where it would run more often.
bool may_fail(const Value& value);

// Replaces every use of a value by map[value], in operands, stores, conditions, yields and index expressions.
// Definitions stay where they are.
void replace_uses(Kernel& kernel, const IdVector<ValueId, ValueId>& map);

// Takes a buffer out of the kernel; what accessed it accesses `instead`, which may be absent where nothing does.
void drop_buffer(Kernel& kernel, BufferId dropped, BufferId instead = {});

}  // namespace kerf::loop
