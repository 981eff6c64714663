#include "sched/pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "axis/linear.h"
#include "axis/pieces.h"
#include "loop/walk.h"
#include "sched/outer.h"
#include "sched/profit.h"
#include "sched/tuning.h"
#include "sym/simplify.h"

namespace kerf::sched {

using loop::AxisId;
using loop::ValueId;
using ops::ScalarOp;
using sym::Expr;
using sym::Kind;

namespace {

constexpr size_t kMost = 4;  // intervals of one loop

// One innermost loop, and where it falls apart.
class Splitter {
 public:
  Splitter(loop::Kernel& kernel, const loop::Loop& loop)
      : kernel_(kernel), loop_(loop), facts_(loop::facts_of(kernel)) {
    const loop::Axis& axis = kernel.axes[loop.axis];
    points_.push_back({axis.symbol, {}});
    for (const loop::Stmt& stmt : loop.body) find_points(stmt);
  }

  size_t count() const { return points_[0].points.size() + 1; }

  // The loop over one interval.
  loop::Loop piece(size_t k) const {
    std::vector<axis::Piece> pieces = axis::pieces_at(points_, facts_);
    return Copier(*this, pieces[k]).run(k);
  }

 private:
  Expr symbol() const { return points_[0].axis; }

  // The innermost // and % terms over this axis.
  void find_wraps(Expr expr) {
    if (!sym::mentions(expr, symbol())) return;
    bool is_term = expr.kind() == Kind::floor_div || expr.kind() == Kind::mod;
    if (auto found = is_term ? axis::wrap_points(expr, kMost, facts_) : std::nullopt) {
      bool own = std::all_of(found->begin(), found->end(), [&](const auto& p) { return p.axis == symbol(); });
      if (own) axis::add_points(points_, *found, kMost, facts_);
      return;
    }
    for (size_t i = 0; i < expr.size(); ++i) find_wraps(expr.operand(i));
  }

  void find_points(const loop::Stmt& stmt) {
    if (const auto* store = std::get_if<loop::Store>(&stmt)) {
      find_wraps(store->index);
    } else if (const auto* define = std::get_if<loop::Define>(&stmt)) {
      const loop::Value& value = kernel_.values[define->value];
      if (value.index.valid()) find_wraps(value.index);
    }
  }

  class Copier {
   public:
    Copier(const Splitter& from, const axis::Piece& piece)
        : from_(from), kernel_(from.kernel_), range_(piece.ranges[0]), inside_(piece, from.facts_) {}

    loop::Loop run(size_t k) {
      std::string name = fmt::format("{}_p{}", range_.axis.symbol().name, k);
      while (kernel_.context->find_symbol(name)) name += "_";
      Expr symbol = kernel_.context->symbol(name, sym::SymbolKind::axis);
      Expr length = sym::simplify(range_.end - range_.begin, from_.facts_);
      facts_ = from_.facts_;
      facts_.set_extent(symbol, length);
      change_ = {{range_.axis, symbol + range_.begin}};
      loop::Loop result{kernel_.axes.push_back({symbol, length}), {}};
      for (const loop::Stmt& stmt : from_.loop_.body) copy(stmt, result.body);
      return result;
    }

   private:
    // Values of the enclosing loops stay what they are.
    ValueId at(ValueId value) const {
      auto found = values_.find(value);
      return found == values_.end() ? value : found->second;
    }
    Expr place(Expr index) const {
      std::vector<sym::Substitution> values;
      for (ValueId value : loop::values_in(index))
        if (ValueId to = at(value); to != value)
          values.push_back(
              {kernel_.context->value_symbol(value.index), kernel_.context->value_symbol(to.index)});
      Expr here = sym::mentions(index, range_.axis) ? sym::substitute(inside_(index), change_) : index;
      return sym::simplify(sym::substitute(here, values), facts_);
    }

    void copy(const loop::Stmt& stmt, loop::Block& out) {
      if (const auto* store = std::get_if<loop::Store>(&stmt)) {
        out.push_back(loop::Store{store->buffer, place(store->index), at(store->value), store->mode});
        return;
      }
      ValueId old = std::get<loop::Define>(stmt).value;
      loop::Value value = kernel_.values[old];
      if (value.index.valid()) value.index = place(value.index);
      for (ValueId& operand : value.operands) operand = at(operand);
      values_[old] = kernel_.values.push_back(std::move(value));
      out.push_back(loop::Define{values_[old]});
    }

    const Splitter& from_;
    loop::Kernel& kernel_;
    const axis::PieceRange range_;
    axis::InPiece inside_;
    sym::Facts facts_;
    std::vector<sym::Substitution> change_;
    std::map<ValueId, ValueId> values_;
  };

  loop::Kernel& kernel_;
  const loop::Loop& loop_;
  sym::Facts facts_;
  std::vector<axis::AxisPoints> points_;
};

bool is_straight(const loop::Block& body) {
  return std::all_of(body.begin(), body.end(), [](const loop::Stmt& stmt) {
    return std::holds_alternative<loop::Define>(stmt) || std::holds_alternative<loop::Store>(stmt);
  });
}

int64_t iterations(const loop::Kernel& kernel, std::span<const AxisId> axes) {
  sym::Facts facts = loop::facts_of(kernel);
  int64_t count = 1;
  for (AxisId axis : axes) count *= std::max<int64_t>(hinted(kernel.axes[axis].extent, facts), 1);
  return count;
}

}  // namespace

std::vector<loop::Kernel> split_pieces(const loop::Kernel& kernel) {
  std::vector<AxisId> chain = outer_chain(kernel);
  if (chain.empty()) return {kernel};
  bool few_rows = iterations(kernel, std::span(chain).first(chain.size() - 1)) < tuning::min_parallel_rows &&
                  iterations(kernel, chain) > tuning::small_group_elements;
  loop::Kernel result = kernel;
  std::vector<loop::Kernel> apart;
  bool changed = false;
  loop::Block body = loop::rewrite_block(result.body, [&](loop::Stmt stmt, loop::Block& out) {
    const auto* loop = std::get_if<loop::Loop>(&stmt);
    bool fits = loop && is_straight(loop->body) &&
                hinted(result.axes[loop->axis].extent, loop::facts_of(result)) >= tuning::min_piece_row;
    if (!fits) {
      out.push_back(std::move(stmt));
      return;
    }
    Splitter splitter(result, *loop);
    if (splitter.count() == 1) {
      out.push_back(std::move(stmt));
      return;
    }
    changed = true;
    for (size_t k = 0; k < splitter.count(); ++k) out.push_back(splitter.piece(k));
  });
  if (!changed) return {kernel};
  result.body = std::move(body);
  bool split_whole = outer_chain(result).size() < chain.size();
  if (!split_whole || !few_rows) return {result};
  // One kernel for each interval, with all loops around it.
  auto innermost = [&](loop::Kernel& of) -> loop::Block& {
    loop::Block* block = &of.body;
    for (size_t i = 0; i + 1 < chain.size(); ++i) block = &std::get<loop::Loop>(block->front()).body;
    return *block;
  };
  size_t parts = innermost(result).size();
  for (size_t k = 0; k < parts; ++k) {
    loop::Kernel one = result;
    loop::Block& block = innermost(one);
    loop::Stmt kept = std::move(block[k]);
    block.clear();
    block.push_back(std::move(kept));
    if (k > 0) one.name += fmt::format("_part{}", k);
    apart.push_back(std::move(one));
  }
  return apart;
}

}  // namespace kerf::sched
