// Whether a NaN in a row shows although the row's maximum does not say so. In a softmax it does: the element minus the maximum
// is NaN, so are its exponential and their sum, and all that is written is divided by that.
#include <algorithm>
#include <set>

#include "codegen/triton/emission.h"
#include "loop/walk.h"

namespace kerf::codegen::triton {

using loop::ValueId;
using loop::ValueKind;
using ops::ScalarOp;

namespace {

class Softmax {
 public:
  Softmax(Emission& e, const loop::Reduction& maximum) : e_(e), maximum_(maximum) {}

  bool shows_nan() {
    bool all_are_differences = true, all_are_covered = true;
    loop::walk(e_.kernel.body, [&](const loop::Stmt& stmt, const loop::Path&) {
      for (ValueId used : loop::uses_of(e_.kernel, stmt))
        if (used == maximum_.result) all_are_differences = all_are_differences && is_difference(stmt);
      if (const auto* reduce = std::get_if<loop::Reduce>(&stmt)) find_sums(*reduce);
    });
    loop::walk(e_.kernel.body, [&](const loop::Stmt& stmt, const loop::Path&) {
      const auto* store = std::get_if<loop::Store>(&stmt);
      if (!store || e_.kernel.buffers[store->buffer].mode == loop::BufferMode::local) return;
      all_are_covered = all_are_covered && covered(store->value);
    });
    return all_are_differences && all_are_covered;
  }

 private:
  const loop::Value& value(ValueId id) const { return e_.kernel.values[id]; }
  bool is(ValueId id, ScalarOp op) const { return value(id).kind == ValueKind::apply && value(id).op == op; }

  // An element of the row, less the maximum.
  bool is_difference(const loop::Stmt& stmt) {
    const auto* define = std::get_if<loop::Define>(&stmt);
    return define && is_difference(define->value);
  }
  bool is_difference(ValueId id) {
    const auto& operands = value(id).operands;
    return is(id, ScalarOp::sub) && operands[1] == maximum_.result && operands[0] != maximum_.result &&
           same(operands[0], maximum_.yields[0]);
  }

  void find_sums(const loop::Reduce& reduce) {
    for (const loop::Reduction& part : reduce.parts) {
      ValueId term = part.yields[0];
      bool is_sum = part.op == ops::ReduceOp::sum && is(term, ScalarOp::exp);
      if (is_sum && is_difference(value(term).operands[0])) sums_.insert(part.result);
    }
  }

  // Computed in the same way, in another loop over the row perhaps.
  bool same(ValueId a, ValueId b) {
    if (a == b || same_.contains({a, b})) return true;
    const loop::Value &x = value(a), &y = value(b);
    if (x.kind != y.kind || x.dtype != y.dtype || x.operands.size() != y.operands.size()) return false;
    bool are_same = false;
    switch (x.kind) {
      case ValueKind::constant: are_same = x.literal == y.literal; break;
      case ValueKind::index: are_same = same_place(x, y); break;
      case ValueKind::load: are_same = x.buffer == y.buffer && same_place(x, y); break;
      case ValueKind::apply: are_same = x.op == y.op; break;
      case ValueKind::reduced: return false;
    }
    for (size_t i = 0; i < x.operands.size(); ++i) are_same = are_same && same(x.operands[i], y.operands[i]);
    if (are_same) same_.insert({a, b});
    return are_same;
  }
  bool same_place(const loop::Value& x, const loop::Value& y) const {
    return over_coordinates(e_, x.index) == over_coordinates(e_, y.index);
  }

  // NaN where a sum is.
  bool covered(ValueId id) {
    if (sums_.contains(id)) return true;
    if (uncovered_.contains(id)) return false;
    static constexpr ScalarOp kPropagates[] = {ScalarOp::add, ScalarOp::sub, ScalarOp::mul,
                                               ScalarOp::div, ScalarOp::neg, ScalarOp::log};
    const loop::Value& x = value(id);
    if (x.kind != ValueKind::apply || !is_floating(x.dtype)) return false;
    bool propagates = x.op == ScalarOp::cast || std::ranges::find(kPropagates, x.op) != std::end(kPropagates);
    bool is_covered = propagates && std::ranges::any_of(x.operands, [&](ValueId y) { return covered(y); });
    if (!is_covered) uncovered_.insert(id);
    return is_covered;
  }

  Emission& e_;
  const loop::Reduction& maximum_;
  std::set<ValueId> sums_, uncovered_;
  std::set<std::pair<ValueId, ValueId>> same_;
};

}  // namespace

bool shows_nan_anyway(Emission& e, const loop::Reduction& maximum) { return Softmax(e, maximum).shows_nan(); }

}  // namespace kerf::codegen::triton
