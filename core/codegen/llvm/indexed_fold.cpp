// Folds of values with their indices. Where the index grows from iteration to iteration, a value that equals the best so far comes
// after it: one comparison is enough, and the index is carried only if something asks for it.
#include <limits>

#include "axis/linear.h"
#include "codegen/llvm/emission.h"

namespace kerf::codegen {

using ops::ReduceOp;

namespace {

// Whether the index is linear in the axes and a step of each is longer than all steps of those further in.
bool is_increasing(const Emission& e, const loop::Reduce& reduce, sym::Expr index) {
  std::vector<axis::AxisInfo> axes;
  for (loop::AxisId id : reduce.axes) axes.push_back({e.kernel.axes[id].symbol, e.kernel.axes[id].extent});
  std::optional<axis::LinearForm> form = axis::linear_form(index, axes);
  if (!form) return false;
  sym::Expr reach = index.context().constant(1);
  for (size_t d = axes.size(); d-- > 0;) {
    for (const axis::AxisInfo& axis : axes)
      if (sym::mentions(axes[d].extent, axis.symbol)) return false;
    if (axes[d].extent.is_constant(1)) continue;
    if (!sym::provably_less_equal(reach, form->coefficients[d], e.facts)) return false;
    reach = form->coefficients[d] * axes[d].extent;
  }
  return true;
}

// As ops::replaces, whatever the order: a better value, the first NaN (or the last), or an equal one with a lower index.
Operand replaces_in_any_order(Emission& e, ReduceOp op, DType dtype, const Indexed& fresh,
                              const Indexed& best) {
  Builder& b = e.b;
  bool is_max = ops::seeks_largest(op);
  Operand lower = b.compare("icmp slt", fresh.index, best.index, "lower");
  if (!is_floating(dtype)) {
    std::string sign = is_signed(dtype) ? "s" : "u";
    Operand better = b.compare("icmp " + sign + (is_max ? "gt" : "lt"), fresh.value, best.value, "better");
    Operand tie = b.binary("and", b.compare("icmp eq", fresh.value, best.value, "equal"), lower, "tie");
    return b.binary("or", better, tie, "replaces");
  }
  Operand better = b.compare(is_max ? "fcmp ogt" : "fcmp olt", fresh.value, best.value, "better");
  Operand tie = b.binary("and", b.compare("fcmp oeq", fresh.value, best.value, "equal"), lower, "tie");
  Operand best_number = b.compare("fcmp ord", best.value, best.value, "best.number");
  Operand among_nan =
      op == ReduceOp::argmax_last_nan ? b.compare("icmp sgt", fresh.index, best.index, "later") : lower;
  Operand nan = b.binary("and", b.compare("fcmp uno", fresh.value, fresh.value, "nan"),
                         b.binary("or", best_number, among_nan, "chosen"), "chosen.nan");
  return b.binary("or", b.binary("or", better, tie, "replaces"), nan, "replaces");
}

}  // namespace

std::optional<Operand> start_if_in_order(Emission& e, const loop::Reduce& reduce, loop::ValueId yield) {
  const loop::Value& value = e.kernel.values[yield];
  if (value.kind != loop::ValueKind::index || !is_increasing(e, reduce, value.index)) return std::nullopt;
  std::vector<sym::Substitution> at_start;
  Operand none = int_constant(Prim::i64, std::numeric_limits<int64_t>::max()), nothing;
  for (loop::AxisId id : reduce.axes) {
    const loop::Axis& axis = e.kernel.axes[id];
    at_start.push_back({axis.symbol, value.index.context().constant(0)});
    auto lo = sym::range_of(axis.extent, e.facts).lo;
    if (lo && *lo >= 1) continue;
    Operand is_empty =
        e.b.compare("icmp slt", scalar_index(e, axis.extent), int_constant(Prim::i64, 1), "empty");
    nothing = nothing.valid() ? e.b.binary("or", nothing, is_empty, "empty") : is_empty;
  }
  Operand first = lane_index(e, sym::substitute(value.index, at_start));
  if (nothing.valid()) return e.b.select(nothing, none, first, "start");
  sym::Range range = sym::range_of(value.index, e.facts);
  bool is_narrow = range.lo && range.hi && *range.lo >= 0 && *range.hi <= std::numeric_limits<int32_t>::max();
  return is_narrow ? e.b.convert("trunc", first, Prim::i32, "start") : first;
}

Operand replaces(Emission& e, ReduceOp op, DType dtype, const Indexed& fresh, const Indexed& best,
                 bool in_order) {
  if (!in_order) return replaces_in_any_order(e, op, dtype, fresh, best);
  bool is_max = ops::seeks_largest(op);
  if (!is_floating(dtype)) {
    std::string sign = is_signed(dtype) ? "s" : "u";
    return e.b.compare("icmp " + sign + (is_max ? "gt" : "lt"), fresh.value, best.value, "better");
  }
  if (op == ReduceOp::argmax_last_nan) {
    Operand better = e.b.compare("fcmp ogt", fresh.value, best.value, "better");
    return e.b.binary("or", better, e.b.compare("fcmp uno", fresh.value, fresh.value, "nan"), "replaces");
  }
  Operand number = e.b.compare("fcmp ord", best.value, best.value, "best.number");
  // True of NaN, too.
  Operand better = e.b.compare(is_max ? "fcmp ugt" : "fcmp ult", fresh.value, best.value, "better");
  return e.b.binary("and", number, better, "replaces");
}

}  // namespace kerf::codegen
