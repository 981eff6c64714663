#include <algorithm>
#include <limits>

#include "codegen/llvm/emission.h"

// Reductions: accumulators travel through the loops as carried values. Over a vector axis each lane folds its own
// share; the shares are joined once, at the end, by a tree.

namespace kerf::codegen {

using loop::Reduction;
using ops::ReduceOp;

namespace {

// One reduction's accumulators: the value and, for argmin and argmax, its index.
struct Accumulator {
  const Reduction* part = nullptr;
  DType dtype;
  size_t first = 0;  // in the carried values
  size_t count = 1;
};

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
    case ReduceOp::argmax: break;
  }
  UNREACHABLE("{} is folded by `replaces`", ops::to_text(op));
}

// As ops::replaces: a better value, the first NaN, or an equal one with a lower index.
Operand replaces(Emission& e, ReduceOp op, DType dtype, const Operand& value, const Operand& index,
                 const Operand& best, const Operand& best_index) {
  Builder& b = e.b;
  bool is_max = op == ReduceOp::argmax;
  Operand lower = b.compare("icmp slt", index, best_index, "lower");
  if (!is_floating(dtype)) {
    std::string sign = is_signed(dtype) ? "s" : "u";
    Operand better = b.compare("icmp " + sign + (is_max ? "gt" : "lt"), value, best, "better");
    Operand tie = b.binary("and", b.compare("icmp eq", value, best, "equal"), lower, "tie");
    return b.binary("or", better, tie, "replaces");
  }
  Operand better = b.compare(is_max ? "fcmp ogt" : "fcmp olt", value, best, "better");
  Operand tie = b.binary("and", b.compare("fcmp oeq", value, best, "equal"), lower, "tie");
  Operand best_number = b.compare("fcmp ord", best, best, "best.number");
  Operand first_nan = b.binary("and", b.compare("fcmp uno", value, value, "nan"),
                               b.binary("or", best_number, lower, "earlier"), "first.nan");
  return b.binary("or", b.binary("or", better, tie, "replaces"), first_nan, "replaces");
}

Carried fold(Emission& e, const Accumulator& acc, const Carried& old, const Carried& fresh) {
  ReduceOp op = acc.part->op;
  if (acc.count == 1) return {combine(e, op, acc.dtype, old[0], fresh[0])};
  Operand takes = replaces(e, op, acc.dtype, fresh[0], fresh[1], old[0], old[1]);
  return {e.b.select(takes, fresh[0], old[0], "best"), e.b.select(takes, fresh[1], old[1], "best.index")};
}

Carried identities(Emission& e, const Accumulator& acc, int lanes) {
  Carried result = {e.b.broadcast(constant_of(ops::identity(acc.part->op, acc.dtype)), lanes)};
  if (acc.count == 2) {
    result.push_back(e.b.broadcast(int_constant(Prim::i64, std::numeric_limits<int64_t>::max()), lanes));
  }
  return result;
}

// The yields of one iteration, folded into `now`. In the tail of the reduction's own vector axis, lanes that are not
// active keep what they have; a mask from further out needs no care, its lanes are never looked at.
void fold_yields(Emission& e, const std::vector<Accumulator>& accumulators, bool masked, Carried& now) {
  for (const Accumulator& acc : accumulators) {
    Carried old(now.begin() + acc.first, now.begin() + acc.first + acc.count), yields;
    for (size_t i = 0; i < acc.count; ++i) {
      yields.push_back(e.b.broadcast(e.value(acc.part->yields[i]), old[i].type.lanes));
    }
    Carried folded = fold(e, acc, old, yields);
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
    now = fold(e, acc, low, high);
  }
  return now;
}

Carried run_axes(Emission& e, const loop::Reduce& reduce, size_t depth, Carried carried,
                 const LoopBody& body) {
  if (depth == reduce.axes.size()) return body(std::move(carried));
  return run_axis(e, reduce.axes[depth], std::move(carried),
                  [&](Carried now) { return run_axes(e, reduce, depth + 1, std::move(now), body); });
}

}  // namespace

void emit_reduce(Emission& e, const loop::Reduce& reduce) {
  int own_lanes = 0;  // of a vector axis among the reduction's
  for (loop::AxisId axis : reduce.axes) {
    if (is_vector_axis(e.kernel.axes[axis])) own_lanes = e.kernel.axes[axis].lanes;
  }
  std::vector<Accumulator> accumulators;
  Carried carried;
  for (const Reduction& part : reduce.parts) {
    Accumulator acc = {&part, e.kernel.values[part.yields[0]].dtype, carried.size(), part.yields.size()};
    int lanes = own_lanes ? own_lanes : e.varying[part.result.index] ? e.lanes : 0;
    for (Operand& identity : identities(e, acc, lanes)) carried.push_back(identity);
    accumulators.push_back(acc);
  }
  carried = run_axes(e, reduce, 0, std::move(carried), [&](Carried now) {
    emit_block(e, reduce.body);
    fold_yields(e, accumulators, own_lanes != 0 && e.mask.valid(), now);
    return now;
  });
  for (const Accumulator& acc : accumulators) {
    Carried now(carried.begin() + acc.first, carried.begin() + acc.first + acc.count);
    if (own_lanes) now = across_lanes(e, acc, now);
    e.values[acc.part->result] = now.back();
  }
}

}  // namespace kerf::codegen
