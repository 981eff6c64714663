#include "sched/split_boxes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "axis/pieces.h"
#include "loop/walk.h"
#include "sched/fold_known.h"
#include "sched/outer.h"
#include "sym/simplify.h"

namespace kerf::sched {

using loop::AxisId;
using loop::ValueId;
using loop::ValueKind;
using ops::ScalarOp;
using sym::Expr;

namespace {

// Where comparisons under the masks of reads change along outer axes, and indices wrap.
class Cuts {
 public:
  explicit Cuts(const loop::Kernel& kernel) : kernel_(kernel), facts_(loop::facts_of(kernel)) {
    for (AxisId axis : outer_chain(kernel)) outer_.push_back(axis);
    loop::walk(kernel.body, [&](const loop::Stmt& stmt, const loop::Path&) {
      if (const auto* store = std::get_if<loop::Store>(&stmt))
        find_wraps(sym::simplify(store->index, facts_));
      const auto* define = std::get_if<loop::Define>(&stmt);
      if (!define) return;
      const loop::Value& value = kernel.values[define->value];
      if (value.kind != ValueKind::load) return;
      find_wraps(sym::simplify(value.index, facts_));
      if (!value.operands.empty()) look_at(value.operands[0]);
    });
  }

  // Per axis the points, ascending, strictly inside; no axis without.
  std::map<AxisId, std::set<int64_t>> points;

 private:
  void look_at(ValueId id) {
    if (!seen_.insert(id).second) return;
    const loop::Value& value = kernel_.values[id];
    if (value.kind != ValueKind::apply) return;
    if (!is_comparison(value.op)) {
      if (value.dtype == DType::b1)
        for (ValueId operand : value.operands) look_at(operand);
      return;
    }
    auto a = index_of(kernel_, value.operands[0]), b = index_of(kernel_, value.operands[1]);
    if (a && b) add(value.op, sym::simplify(*a - *b, facts_));
  }

  // The innermost // and % terms over outer axes.
  void find_wraps(Expr expr) {
    bool is_term = expr.kind() == sym::Kind::floor_div || expr.kind() == sym::Kind::mod;
    if (auto found = is_term ? axis::wrap_points(expr, kMostBoxes, facts_) : std::nullopt) {
      for (const axis::AxisPoints& of : *found) {
        auto axis = std::find_if(outer_.begin(), outer_.end(),
                                 [&](AxisId id) { return kernel_.axes[id].symbol == of.axis; });
        if (axis == outer_.end() || !kernel_.axes[*axis].extent.is_constant()) continue;
        for (Expr point : of.points)
          if (point.is_constant()) insert(*axis, point.constant(), kernel_.axes[*axis].extent.constant());
      }
      return;
    }
    for (size_t i = 0; i < expr.size(); ++i) find_wraps(expr.operand(i));
  }

  // `difference` compared with 0.
  void add(ScalarOp op, Expr difference) {
    std::vector<Expr> symbols;
    sym::collect_symbols(difference, symbols);
    if (symbols.size() != 1) return;
    auto axis = std::find_if(outer_.begin(), outer_.end(),
                             [&](AxisId id) { return kernel_.axes[id].symbol == symbols[0]; });
    auto affine = sym::affine_in(difference, symbols[0]);
    if (axis == outer_.end() || !affine || !affine->coefficient.is_constant() || !affine->rest.is_constant())
      return;
    Expr extent = kernel_.axes[*axis].extent;
    if (!extent.is_constant()) return;
    // Where scale * i + offset goes from below 0 to 0, and from 0 to above.
    int64_t scale = affine->coefficient.constant(), offset = affine->rest.constant();
    if (scale < 0) scale = -scale, offset = -offset, op = mirrored(op);
    auto ceil = [](int64_t n, int64_t d) { return n >= 0 ? (n + d - 1) / d : -(-n / d); };
    int64_t reaches = ceil(-offset, scale), passes = ceil(-offset + 1, scale);
    bool equality = op == ScalarOp::eq || op == ScalarOp::ne;
    if (equality || op == ScalarOp::lt || op == ScalarOp::ge) insert(*axis, reaches, extent.constant());
    if (equality || op == ScalarOp::le || op == ScalarOp::gt) insert(*axis, passes, extent.constant());
  }

  static ScalarOp mirrored(ScalarOp op) {
    switch (op) {
      case ScalarOp::lt: return ScalarOp::gt;
      case ScalarOp::gt: return ScalarOp::lt;
      case ScalarOp::le: return ScalarOp::ge;
      case ScalarOp::ge: return ScalarOp::le;
      default: return op;
    }
  }

  void insert(AxisId axis, int64_t point, int64_t extent) {
    if (point > 0 && point < extent) points[axis].insert(point);
  }

  const loop::Kernel& kernel_;
  sym::Facts facts_;
  std::vector<AxisId> outer_;
  std::set<ValueId> seen_;
};

struct Interval {
  AxisId axis;
  int64_t begin = 0, end = 0;
};

// A copy of the kernel on a box, with what is known there folded.
class Box {
 public:
  Box(const loop::Kernel& kernel, const std::vector<Interval>& intervals) : kernel_(kernel) {
    std::vector<sym::Substitution> moved;
    std::set<AxisId> gone;
    for (const Interval& interval : intervals) {
      loop::Axis& axis = kernel_.axes[interval.axis];
      Expr begin = kernel_.context->constant(interval.begin);
      bool single = interval.end - interval.begin == 1;
      axis.extent = kernel_.context->constant(interval.end - interval.begin);
      moved.push_back({axis.symbol, single ? begin : axis.symbol + begin});
      if (single) gone.insert(interval.axis);
    }
    kernel_.body = loop::rewrite_block(std::move(kernel_.body), [&](loop::Stmt stmt, loop::Block& out) {
      auto* loop = std::get_if<loop::Loop>(&stmt);
      if (!loop || !gone.contains(loop->axis)) return out.push_back(std::move(stmt));
      for (loop::Stmt& inner : loop->body) out.push_back(std::move(inner));
    });
    sym::Facts facts = loop::facts_of(kernel_);
    loop::rewrite_expressions(kernel_,
                              [&](Expr expr) { return sym::simplify(sym::substitute(expr, moved), facts); });
  }

  loop::Kernel run() { return fold_known(std::move(kernel_)); }

 private:
  loop::Kernel kernel_;
};

}  // namespace

std::vector<loop::Kernel> split_boxes(const loop::Kernel& kernel) {
  std::map<AxisId, std::set<int64_t>> points = Cuts(kernel).points;
  size_t boxes = 1;
  for (const auto& [axis, at] : points) boxes *= at.size() + 1;
  if (boxes == 1 || boxes > kMostBoxes) return {kernel};
  std::vector<std::vector<Interval>> all{{}};
  for (const auto& [axis, at] : points) {
    std::vector<std::vector<Interval>> longer;
    for (const std::vector<Interval>& box : all) {
      int64_t begin = 0;
      auto add = [&](int64_t end) {
        longer.push_back(box);
        longer.back().push_back({axis, begin, end});
        begin = end;
      };
      for (int64_t point : at) add(point);
      add(kernel.axes[axis].extent.constant());
    }
    all = std::move(longer);
  }
  std::vector<loop::Kernel> result;
  for (const std::vector<Interval>& box : all) result.push_back(Box(kernel, box).run());
  return join_boxes(std::move(result));
}

}  // namespace kerf::sched
