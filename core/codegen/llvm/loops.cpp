#include <algorithm>

#include "codegen/llvm/emission.h"
#include "sym/facts.h"
#include "sym/text.h"

namespace kerf::codegen {

using loop::AxisId;

namespace {

constexpr int64_t kMaxUnrolled = 64;

struct Counted {
  Operand begin, end;
  int64_t step = 1;
  bool runs_once = false;  // begin < end is known
};

// A do-while loop behind a test, so that what does not change in it is hoisted by LICM.
Carried counted_loop(Emission& e, const Counted& c, Carried carried, std::string_view name,
                     const std::function<Carried(Operand, Carried)>& body) {
  Builder& b = e.b;
  Label loop = b.new_label(std::string(name) + ".loop");
  Label done = b.new_label(std::string(name) + ".done");
  Label before = b.current();
  if (c.runs_once) {
    b.branch(loop);
  } else {
    b.branch(b.compare("icmp slt", c.begin, c.end, "runs"), loop, done);
  }

  b.start(loop);
  Operand counter = b.phi({Prim::i64}, name);
  b.add_incoming(counter, c.begin, before);
  Carried phis;
  for (const Operand& operand : carried) {
    phis.push_back(b.phi(operand.type, "acc"));
    b.add_incoming(phis.back(), operand, before);
  }
  Carried result = body(counter, phis);
  Operand next = b.binary("add nsw", counter, int_constant(Prim::i64, c.step), std::string(name) + ".next");
  Label latch = b.current();
  b.add_incoming(counter, next, latch);
  for (size_t i = 0; i < phis.size(); ++i) b.add_incoming(phis[i], result[i], latch);
  b.branch(b.compare("icmp slt", next, c.end, "more"), loop, done);

  b.start(done);
  if (c.runs_once) return result;
  for (size_t i = 0; i < result.size(); ++i) {
    Operand out = b.phi(result[i].type, "acc");
    b.add_incoming(out, carried[i], before);
    b.add_incoming(out, result[i], latch);
    result[i] = out;
  }
  return result;
}

Operand smaller(Emission& e, const Operand& a, const Operand& c) {
  return e.b.select(e.b.compare("icmp slt", a, c, "shorter"), a, c, "end");
}

Carried blocked_loop(Emission& e, const Counted& c, Carried carried, const std::string& name,
                     const Blocks* blocks, const std::function<Carried(Operand, Carried)>& body) {
  if (!blocks) return counted_loop(e, c, std::move(carried), name, body);
  int64_t length = blocks->iterations * c.step;
  return counted_loop(e, {c.begin, c.end, length, c.runs_once}, std::move(carried), name + ".block",
                      [&](Operand begin, Carried now) {
                        Operand full = e.b.binary("add nsw", begin, int_constant(Prim::i64, length), "full");
                        Operand end = smaller(e, full, c.end);
                        return blocks->join(
                            now, counted_loop(e, {begin, end, c.step, true}, blocks->fresh(), name, body));
                      });
}

std::string name_of(const Emission& e, AxisId axis) { return e.kernel.axes[axis].symbol.symbol().name; }

Operand& symbol_of(Emission& e, AxisId axis) { return e.symbols[e.kernel.axes[axis].symbol.node()]; }

Carried run_unrolled(Emission& e, AxisId axis, Carried carried, int64_t extent, const LoopBody& body) {
  for (int64_t i = 0; i < extent; ++i) {
    symbol_of(e, axis) = int_constant(Prim::i64, i);
    carried = body(std::move(carried));
  }
  return carried;
}

// The masked iterations after the last whole vector. Carried vectors keep their width: the tail works on their low
// lanes.
Carried run_tail(Emission& e, AxisId axis, const Operand& begin, const Operand& end, Carried carried,
                 const LoopBody& body) {
  Builder& b = e.b;
  int main_lanes = e.lanes;
  int lanes = std::min(main_lanes, e.target.vector_bytes / 4);
  Carried low;
  for (const Operand& operand : carried) low.push_back(b.part(operand, 0, lanes));
  e.lanes = lanes;
  Counted counted = {begin, end, lanes};
  low =
      counted_loop(e, counted, std::move(low), name_of(e, axis) + ".tail", [&](Operand counter, Carried now) {
        symbol_of(e, axis) = counter;
        Operand rest = b.convert("trunc", b.binary("sub", end, counter, "rest"), Prim::i32, "rest");
        e.mask = b.compare("icmp slt", lane_numbers(Prim::i32, lanes), rest, "mask");
        Carried result = body(std::move(now));
        e.mask = {};
        return result;
      });
  e.lanes = main_lanes;
  if (lanes == main_lanes) return low;
  std::vector<int> merge(main_lanes), widen(main_lanes);
  for (int i = 0; i < main_lanes; ++i) {
    widen[i] = i < lanes ? i : 0;
    merge[i] = i < lanes ? i : main_lanes + i;
  }
  for (size_t i = 0; i < low.size(); ++i) {
    low[i] = b.shuffle(b.shuffle(low[i], widen), carried[i], merge, "acc");
  }
  return low;
}

Carried run_vector(Emission& e, AxisId id, Carried carried, const LoopBody& body, const Blocks* blocks) {
  Builder& b = e.b;
  const loop::Axis& axis = e.kernel.axes[id];
  CHECK(e.lanes == 0, "vector axis {} inside a vector loop", name_of(e, id));
  e.lanes = axis.lanes;
  e.lane_axis = axis.symbol;
  e.nest.push_back(axis.symbol);
  Operand zero = int_constant(Prim::i64, 0);
  Operand extent = scalar_index(e, axis.extent);
  bool whole = sym::provably_divides(e.kernel.context->constant(axis.lanes), axis.extent, e.facts);
  sym::Range range = sym::range_of(axis.extent, e.facts);
  Operand main_end = extent;
  if (!whole && axis.extent.is_constant()) {
    main_end = int_constant(Prim::i64, axis.extent.constant() / axis.lanes * axis.lanes);
  } else if (!whole) {
    main_end = b.binary("and", extent, int_constant(Prim::i64, -int64_t{axis.lanes}), "whole");
  }
  bool never_whole = range.hi && *range.hi < axis.lanes;
  if (!never_whole) {
    Counted counted = {zero, main_end, axis.lanes};
    counted.runs_once = range.lo && *range.lo >= axis.lanes;
    carried = blocked_loop(e, counted, std::move(carried), name_of(e, id), blocks,
                           [&](Operand counter, Carried now) {
                             symbol_of(e, id) = counter;
                             return body(std::move(now));
                           });
  }
  if (!whole) {
    // An extent below zero has its "whole" part below zero too; no tail runs since begin >= end.
    Operand begin = never_whole ? zero : main_end;
    if (blocks) {
      carried = blocks->join(carried, run_tail(e, id, begin, extent, blocks->fresh(), body));
    } else {
      carried = run_tail(e, id, begin, extent, std::move(carried), body);
    }
  }
  e.nest.pop_back();
  e.lanes = 0;
  e.lane_axis = {};
  return carried;
}

void emit_loop(Emission& e, const loop::Loop& loop) {
  if (emit_tile(e, loop)) return;
  run_axis(e, loop.axis, {}, [&](Carried) {
    emit_block(e, loop.body);
    return Carried{};
  });
}

// A uniform condition is a branch; one that differs by lane narrows the mask and skips when no lane is left.
void emit_guard(Emission& e, const loop::Guard& guard) {
  Operand condition = e.value(guard.condition);
  if (!condition.type.is_vector()) {
    when(e, condition, [&] { emit_block(e, guard.body); });
    return;
  }
  Operand outer = e.mask;
  Operand mask = outer.valid() ? e.b.binary("and", outer, condition, "mask") : condition;
  when(e, any_lane(e, mask), [&] {
    e.mask = mask;
    emit_block(e, guard.body);
    e.mask = outer;
  });
}

void emit_define(Emission& e, loop::ValueId id) {
  const loop::Value& value = e.kernel.values[id];
  Operand& out = e.values[id];
  switch (value.kind) {
    case loop::ValueKind::constant: out = constant_of(value.literal); return;
    case loop::ValueKind::index: out = lane_index(e, value.index); return;
    case loop::ValueKind::load: {
      auto ready = e.preloaded.find(id.index);
      out = ready != e.preloaded.end() ? ready->second : emit_load(e, value, "v" + std::to_string(id.index));
      return;
    }
    case loop::ValueKind::apply: out = emit_apply(e, id, value); return;
    case loop::ValueKind::reduced: break;
  }
  UNREACHABLE("definition of the reduced value %{}", id.index);
}

}  // namespace

Carried run_serial(Emission& e, AxisId axis, Carried carried, const LoopBody& body, const Blocks* blocks) {
  Operand extent = scalar_index(e, e.kernel.axes[axis].extent);
  Counted counted = {int_constant(Prim::i64, 0), extent, 1};
  auto lo = sym::range_of(e.kernel.axes[axis].extent, e.facts).lo;
  counted.runs_once = lo && *lo >= 1;
  e.nest.push_back(e.kernel.axes[axis].symbol);
  carried = blocked_loop(e, counted, std::move(carried), name_of(e, axis), blocks,
                         [&](Operand counter, Carried now) {
                           symbol_of(e, axis) = counter;
                           return body(std::move(now));
                         });
  e.nest.pop_back();
  return carried;
}

Carried run_axis(Emission& e, AxisId id, Carried carried, const LoopBody& body, const Blocks* blocks) {
  const loop::Axis& axis = e.kernel.axes[id];
  if (is_vector_axis(axis)) return run_vector(e, id, std::move(carried), body, blocks);
  if (axis.extent.is_constant() && !blocks) {
    int64_t extent = axis.extent.constant();
    bool unrolls = axis.role == loop::Role::unrolled && extent <= kMaxUnrolled;
    if (extent <= 1 || unrolls) return run_unrolled(e, id, std::move(carried), extent, body);
  }
  return run_serial(e, id, std::move(carried), body, blocks);
}

// Coordinates are decoded once and then counted up like an odometer.
void run_grid(Emission& e, std::span<const AxisId> axes, const Operand& begin, const Operand& end,
              const std::function<void()>& body) {
  Builder& b = e.b;
  size_t n = axes.size();
  Operand one = int_constant(Prim::i64, 1), zero = int_constant(Prim::i64, 0);
  std::vector<Operand> extents(n), first(n);
  for (size_t i = 0; i < n; ++i) extents[i] = scalar_index(e, e.kernel.axes[axes[i]].extent);
  Operand rest = begin;
  for (size_t i = n; i-- > 0;) {
    first[i] = i == 0 ? rest : b.binary("urem", rest, extents[i], name_of(e, axes[i]) + ".first");
    if (i > 0) rest = b.binary("udiv", rest, extents[i], "rest");
  }
  if (n == 0) return body();
  for (AxisId axis : axes) e.nest.push_back(e.kernel.axes[axis].symbol);
  // With one axis the coordinate is the iteration itself.
  Carried carried = n > 1 ? first : Carried{};
  counted_loop(e, {begin, end, 1, true}, carried, "grid", [&](Operand iteration, Carried now) {
    for (size_t i = 0; i < n; ++i) symbol_of(e, axes[i]) = n == 1 ? iteration : now[i];
    body();
    Operand carry = int_constant(Prim::i1, 1);
    for (size_t i = now.size(); i-- > 0;) {
      Operand moved = b.binary("add nsw", now[i], one, name_of(e, axes[i]) + ".moved");
      if (!carry.literal) moved = b.select(carry, moved, now[i], name_of(e, axes[i]) + ".moved");
      carry = b.compare("icmp eq", moved, extents[i], "wraps");
      now[i] = i == 0 ? moved : b.select(carry, zero, moved, name_of(e, axes[i]) + ".next");
    }
    return now;
  });
  e.nest.clear();
}

void emit_statement(Emission& e, const loop::Stmt& statement) {
  if (auto* define = std::get_if<loop::Define>(&statement)) {
    emit_define(e, define->value);
  } else if (auto* store = std::get_if<loop::Store>(&statement)) {
    emit_store(e, *store);
  } else if (auto* inner = std::get_if<loop::Loop>(&statement)) {
    emit_loop(e, *inner);
  } else if (auto* reduce = std::get_if<loop::Reduce>(&statement)) {
    emit_reduce(e, *reduce);
  } else if (auto* guard = std::get_if<loop::Guard>(&statement)) {
    emit_guard(e, *guard);
  } else {
    UNREACHABLE("a barrier passed check_supported");
  }
}

void emit_block(Emission& e, const loop::Block& block) {
  for (const loop::Stmt& statement : block) emit_statement(e, statement);
}

void when(Emission& e, const Operand& condition, const std::function<void()>& body) {
  Label then = e.b.new_label("then"), join = e.b.new_label("join");
  e.b.branch(condition, then, join);
  e.b.start(then);
  body();
  e.b.branch(join);
  e.b.start(join);
}

Operand when(Emission& e, const Operand& condition, const Operand& otherwise,
             const std::function<Operand()>& body) {
  Label then = e.b.new_label("then"), join = e.b.new_label("join");
  Label before = e.b.current();
  e.b.branch(condition, then, join);
  e.b.start(then);
  Operand result = body();
  Label end = e.b.current();
  e.b.branch(join);
  e.b.start(join);
  Operand merged = e.b.phi(result.type, "merged");
  e.b.add_incoming(merged, otherwise, before);
  e.b.add_incoming(merged, result, end);
  return merged;
}

Operand any_lane(Emission& e, const Operand& mask) {
  if (!mask.type.is_vector()) return mask;
  return e.b.call({Prim::i1}, "llvm.vector.reduce.or." + suffix(mask.type), std::span(&mask, 1), "any");
}

}  // namespace kerf::codegen
