#include <algorithm>
#include <limits>
#include <optional>

#include "codegen/llvm/emission.h"

// Reductions: accumulators travel through the loops as carried values. Over a vector axis each lane folds its own
// share; the shares are joined once, at the end, by a tree.
//
// A long fold runs in blocks. A sum of floats in one chain of n additions is off by up to n/2 ulp (sqrt(n) on the average), so the
// sums of blocks are added with their rounding errors kept: `sum + lost` is what was added so far, to about twice the
// precision. Then the chain within a block is all that costs accuracy, whatever the size. The other folds do not
// round; they go through the same blocks, their block results folded as usual.

namespace kerf::codegen {

using loop::Reduction;
using ops::ReduceOp;

namespace {

constexpr int64_t kBlock = 16;         // additions in one chain
constexpr int64_t kLongestChain = 32;  // a fold this short needs no blocks

// What is folded for a reduction, or for several that differ in what they ask for: the value and, if something needs it, its index.
struct Accumulator {
  ReduceOp op;
  std::vector<loop::ValueId> yields;
  DType dtype;
  int lanes = 0;
  std::optional<Operand>
      start;  // of an index that grows from iteration to iteration: the first, as wide as it is carried
  size_t count = 1;
  size_t first = 0;  // in the carried values

  bool rounds() const { return op == ReduceOp::sum && is_floating(dtype); }
};

// Where the blocks of a reduction are: at the axis `depth`, `iterations` of it a block. Axes further in are short enough
// to lie within a block.
struct Blocking {
  size_t depth = 0;
  int64_t iterations = 0;
};

std::optional<Blocking> blocking_of(const Emission& e, const loop::Reduce& reduce) {
  int64_t chain = 1;
  for (size_t depth = reduce.axes.size(); depth-- > 0;) {
    const loop::Axis& axis = e.kernel.axes[reduce.axes[depth]];
    int64_t lanes = is_vector_axis(axis) ? axis.lanes : 1;
    sym::Range range = sym::range_of(axis.extent, e.facts);
    if (!range.hi || *range.hi / lanes > kLongestChain / chain)
      return Blocking{depth, std::max<int64_t>(kBlock / chain, 1)};
    chain *= std::max<int64_t>(*range.hi / lanes, 1);
  }
  return std::nullopt;
}

Operand combine(Emission& e, ReduceOp op, DType dtype, const Operand& a, const Operand& c) {
  bool floating = is_floating(dtype);
  switch (op) {
    case ReduceOp::sum: return e.b.binary(floating ? "fadd" : "add", a, c, "sum");
    case ReduceOp::prod: return e.b.binary(floating ? "fmul" : "mul", a, c, "prod");
    case ReduceOp::min: return emit_minimum(e, dtype, a, c);
    case ReduceOp::max: return emit_maximum(e, dtype, a, c);
    case ReduceOp::any: return e.b.binary("or", a, c, "any");
    case ReduceOp::all: return e.b.binary("and", a, c, "all");
    case ReduceOp::argmin:
    case ReduceOp::argmax:
    case ReduceOp::argmax_last_nan:
    case ReduceOp::first_min:
    case ReduceOp::first_max: break;
  }
  UNREACHABLE("{} is folded by `replaces`", ops::to_text(op));
}

// `in_order`: the fresh values come after the old ones.
Carried fold(Emission& e, const Accumulator& acc, const Carried& old, const Carried& fresh, bool in_order) {
  if (!ops::info(acc.op).has_index()) return {combine(e, acc.op, acc.dtype, old[0], fresh[0])};
  auto indexed = [&](const Carried& x) { return Indexed{x[0], acc.count == 2 ? x[1] : Operand{}}; };
  Operand takes =
      replaces(e, acc.op, acc.dtype, indexed(fresh), indexed(old), in_order && acc.start.has_value());
  Carried result;
  for (size_t i = 0; i < acc.count; ++i) result.push_back(e.b.select(takes, fresh[i], old[i], "best"));
  return result;
}

Carried identities(Emission& e, const Accumulator& acc) {
  Carried result = {e.b.broadcast(constant_of(ops::identity(acc.op, acc.dtype)), acc.lanes)};
  Operand none = int_constant(Prim::i64, std::numeric_limits<int64_t>::max());
  if (acc.count == 2) result.push_back(e.b.broadcast(acc.start.value_or(none), acc.lanes));
  return result;
}

Carried identities(Emission& e, const std::vector<Accumulator>& accumulators) {
  Carried result;
  for (const Accumulator& acc : accumulators)
    for (Operand& identity : identities(e, acc)) result.push_back(identity);
  return result;
}

Carried slice(const Carried& carried, size_t first, size_t count) {
  return Carried(carried.begin() + first, carried.begin() + first + count);
}

// What is carried from block to block: a sum that rounds is followed by what its additions have lost.
Carried block_start(Emission& e, const std::vector<Accumulator>& accumulators) {
  Carried result;
  for (const Accumulator& acc : accumulators) {
    for (Operand& identity : identities(e, acc)) result.push_back(identity);
    if (acc.rounds()) result.push_back(result.back());
  }
  return result;
}

// Knuth's exact addition (The Art of Computer Programming, volume 2, 4.2.2, theorem B).
Carried add_exactly(Emission& e, const Operand& sum, const Operand& lost, const Operand& x) {
  Builder& b = e.b;
  Operand total = b.binary("fadd", sum, x, "total");
  Operand rounded_x = b.binary("fsub", total, sum, "rounded");
  Operand error_of_sum = b.binary("fsub", sum, b.binary("fsub", total, rounded_x, "kept"), "error");
  Operand error_of_x = b.binary("fsub", x, rounded_x, "error");
  return {total, b.binary("fadd", lost, b.binary("fadd", error_of_sum, error_of_x, "error"), "lost")};
}

Carried join_block(Emission& e, const std::vector<Accumulator>& accumulators, const Carried& carried,
                   const Carried& block) {
  Carried result;
  size_t at = 0;
  for (const Accumulator& acc : accumulators) {
    Carried fresh = slice(block, acc.first, acc.count);
    Carried joined = acc.rounds() ? add_exactly(e, carried[at], carried[at + 1], fresh[0])
                                  : fold(e, acc, slice(carried, at, acc.count), fresh, true);
    at += joined.size();
    result.insert(result.end(), joined.begin(), joined.end());
  }
  return result;
}

// The lost parts come back. Where the sum is infinite or NaN they are NaN and do not count.
Carried block_end(Emission& e, const std::vector<Accumulator>& accumulators, const Carried& carried) {
  Carried result;
  size_t at = 0;
  for (const Accumulator& acc : accumulators) {
    for (size_t i = 0; i < acc.count; ++i) result.push_back(carried[at++]);
    if (!acc.rounds()) continue;
    Operand sum = result.back(), lost = carried[at++];
    Operand is_number = e.b.compare("fcmp ord", lost, lost, "is.number");
    result.back() = e.b.select(is_number, e.b.binary("fadd", sum, lost, "whole"), sum, "sum");
  }
  return result;
}

// The yields of one iteration, folded into `now`. In the tail of the reduction's own vector axis, lanes that are not
// active keep what they have; a mask from further out needs no care, its lanes are never looked at.
void fold_yields(Emission& e, const std::vector<Accumulator>& accumulators, bool masked, Carried& now) {
  for (const Accumulator& acc : accumulators) {
    Carried old = slice(now, acc.first, acc.count), yields;
    for (size_t i = 0; i < acc.count; ++i) {
      Operand yield = e.value(acc.yields[i]);
      if (yield.type.prim != old[i].type.prim) yield = e.b.convert("trunc", yield, old[i].type.prim, "index");
      yields.push_back(e.b.broadcast(yield, old[i].type.lanes));
    }
    Carried folded = fold(e, acc, old, yields, true);
    for (size_t i = 0; i < acc.count; ++i) {
      now[acc.first + i] = masked ? e.b.select(e.mask, folded[i], old[i], "kept") : folded[i];
    }
  }
}

// Halves until one lane is left.
Carried across_lanes(Emission& e, const Accumulator& acc, Carried now) {
  for (int half = now[0].type.lanes / 2; half >= 1; half /= 2) {
    Carried low, high;
    for (const Operand& vector : now) {
      bool last = half == 1;
      low.push_back(last ? e.b.extract(vector, int_constant(Prim::i64, 0)) : e.b.part(vector, 0, half));
      high.push_back(last ? e.b.extract(vector, int_constant(Prim::i64, 1)) : e.b.part(vector, half, half));
    }
    now = fold(e, acc, low, high, false);
  }
  return now;
}

// The axes from `depth` inwards, up to `end`.
Carried run_axes(Emission& e, const loop::Reduce& reduce, size_t depth, size_t end, Carried carried,
                 const LoopBody& body) {
  if (depth == end) return body(std::move(carried));
  return run_axis(e, reduce.axes[depth], std::move(carried),
                  [&](Carried now) { return run_axes(e, reduce, depth + 1, end, std::move(now), body); });
}

Carried run_blocked(Emission& e, const loop::Reduce& reduce, const Blocking& blocking,
                    const std::vector<Accumulator>& accumulators, const LoopBody& body) {
  Blocks blocks = {blocking.iterations, [&] { return identities(e, accumulators); },
                   [&](const Carried& carried, const Carried& block) {
                     return join_block(e, accumulators, carried, block);
                   }};
  auto inside = [&](Carried now) {
    return run_axes(e, reduce, blocking.depth + 1, reduce.axes.size(), std::move(now), body);
  };
  Carried carried = run_axes(e, reduce, 0, blocking.depth, block_start(e, accumulators), [&](Carried now) {
    return run_axis(e, reduce.axes[blocking.depth], std::move(now), inside, &blocks);
  });
  return block_end(e, accumulators, carried);
}

// Whether one accumulator serves both: the value that one asks for lies where the other points. NaN is NaN.
bool is_same_fold(ReduceOp a, ReduceOp b) {
  if (!ops::info(a).has_index() || !ops::info(b).has_index()) return a == b;
  bool one_index = !ops::info(a).index_result || !ops::info(b).index_result || a == b;
  return one_index && ops::seeks_largest(a) == ops::seeks_largest(b);
}

// The accumulator of each part, of which several may share one.
struct Accumulators {
  std::vector<Accumulator> all;
  std::vector<size_t> of_part;
};

Accumulators accumulators_of(Emission& e, const loop::Reduce& reduce, int own_lanes) {
  Accumulators result;
  for (const Reduction& part : reduce.parts) {
    const ops::ReduceInfo& row = ops::info(part.op);
    auto serves = [&](const Accumulator& acc) {
      return acc.yields == part.yields && is_same_fold(acc.op, part.op);
    };
    auto at = std::ranges::find_if(result.all, serves);
    result.of_part.push_back(static_cast<size_t>(at - result.all.begin()));
    if (at == result.all.end()) {
      int lanes = own_lanes ? own_lanes : e.varying[part.result.index] ? e.lanes : 0;
      result.all.push_back({part.op, part.yields, e.kernel.values[part.yields[0]].dtype, lanes, {}});
      at = result.all.end() - 1;
      if (row.has_index()) at->start = start_if_in_order(e, reduce, part.yields[1]);
    }
    if (row.index_result) at->op = part.op;
    // Lanes are joined by the indices.
    if (row.index_result || (row.has_index() && (own_lanes || !at->start))) at->count = 2;
  }
  size_t first = 0;
  for (Accumulator& acc : result.all) {
    acc.first = first;
    first += acc.count;
  }
  return result;
}

}  // namespace

void emit_reduce(Emission& e, const loop::Reduce& reduce) {
  int own_lanes = 0;  // of a vector axis among the reduction's
  for (loop::AxisId axis : reduce.axes) {
    if (is_vector_axis(e.kernel.axes[axis])) own_lanes = e.kernel.axes[axis].lanes;
  }
  auto [accumulators, of_part] = accumulators_of(e, reduce, own_lanes);
  bool any_rounds = std::ranges::any_of(accumulators, &Accumulator::rounds);
  LoopBody body = [&](Carried now) {
    emit_block(e, reduce.body);
    fold_yields(e, accumulators, own_lanes != 0 && e.mask.valid(), now);
    return now;
  };
  std::optional<Blocking> blocking = any_rounds ? blocking_of(e, reduce) : std::nullopt;
  Carried carried = blocking ? run_blocked(e, reduce, *blocking, accumulators, body)
                             : run_axes(e, reduce, 0, reduce.axes.size(), identities(e, accumulators), body);
  std::vector<Carried> totals;
  for (const Accumulator& acc : accumulators) {
    totals.push_back(slice(carried, acc.first, acc.count));
    if (own_lanes) totals.back() = across_lanes(e, acc, totals.back());
  }
  for (size_t i = 0; i < of_part.size(); ++i) {
    const Reduction& part = reduce.parts[i];
    Operand& result = e.values[part.result];
    result = totals[of_part[i]][ops::info(part.op).index_result ? 1 : 0];
    if (ops::info(part.op).index_result && result.type.prim != Prim::i64)
      result = e.b.convert("sext", result, Prim::i64, "index");
  }
}

}  // namespace kerf::codegen
