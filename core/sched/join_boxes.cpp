// Boxes that fill every second element each, as one kernel.
#include <algorithm>
#include <optional>

#include "axis/linear.h"
#include "loop/renumber.h"
#include "loop/walk.h"
#include "sched/outer.h"
#include "sched/split_boxes.h"
#include "sym/simplify.h"

namespace kerf::sched {

using loop::Kernel;
using sym::Expr;

namespace {

// The innermost block of a kernel that is one nest.
const loop::Block* innermost(const Kernel& kernel, size_t depth) {
  const loop::Block* block = &kernel.body;
  for (size_t i = 0; i < depth; ++i) block = &std::get<loop::Loop>(block->front()).body;
  return block;
}

// Only definitions and stores, at indices of axes alone.
bool is_pointwise(const Kernel& kernel, const loop::Block& block) {
  auto is_simple = [](Expr index) { return !index.valid() || loop::values_in(index).empty(); };
  return std::ranges::all_of(block, [&](const loop::Stmt& stmt) {
    if (const auto* store = std::get_if<loop::Store>(&stmt)) return is_simple(store->index);
    const auto* define = std::get_if<loop::Define>(&stmt);
    return define && is_simple(kernel.values[define->value].index);
  });
}

std::vector<const loop::Store*> stores_of(const loop::Block& block) {
  std::vector<const loop::Store*> result;
  for (const loop::Stmt& stmt : block)
    if (const auto* store = std::get_if<loop::Store>(&stmt)) result.push_back(store);
  return result;
}

class Join {
 public:
  Join(const Kernel& a, const Kernel& b) : a_(a), b_(b), chain_(outer_chain(a)), facts_(loop::facts_of(a)) {}

  std::optional<Kernel> run() const {
    std::vector<loop::AxisId> other = outer_chain(b_);
    if (chain_.size() != other.size()) return std::nullopt;
    for (size_t i = 0; i < chain_.size(); ++i) {
      const loop::Axis &x = a_.axes[chain_[i]], &y = b_.axes[other[i]];
      if (x.symbol != y.symbol || x.extent != y.extent) return std::nullopt;
    }
    const loop::Block &first = *innermost(a_, chain_.size()), &second = *innermost(b_, chain_.size());
    if (!is_pointwise(a_, first) || !is_pointwise(b_, second) || !are_halves(first, second))
      return std::nullopt;
    return loop::renumber(together(second));
  }

 private:
  // Each store of one has a neighbour in the other.
  bool are_halves(const loop::Block& first, const loop::Block& second) const {
    std::vector<const loop::Store*> evens = stores_of(first), odds = stores_of(second);
    if (evens.size() != odds.size()) return false;
    for (size_t i = 0; i < evens.size(); ++i) {
      const loop::Store &even = *evens[i], &odd = *odds[i];
      bool is_half = std::ranges::any_of(chain_, [&](loop::AxisId axis) {
        auto stride = axis::stride_over(even.index, a_.axes[axis].symbol);
        return stride && stride->is_constant(2);
      });
      bool are_plain = even.mode == loop::StoreMode::assign && odd.mode == loop::StoreMode::assign;
      bool is_next = sym::simplify(odd.index - even.index, facts_).is_constant(1);
      if (!is_half || !are_plain || even.buffer != odd.buffer || !is_next) return false;
    }
    return true;
  }

  Kernel together(const loop::Block& second) const {
    Kernel result = a_;
    const size_t shift = result.values.size();
    auto moved = [&](loop::ValueId id) { return loop::ValueId(id.index + shift); };
    for (loop::Value value : b_.values) {
      for (loop::ValueId& operand : value.operands) operand = moved(operand);
      result.values.push_back(std::move(value));
    }
    loop::Block* block = &result.body;
    for (size_t i = 0; i < chain_.size(); ++i) block = &std::get<loop::Loop>(block->front()).body;
    for (loop::Stmt stmt : second) {
      if (auto* define = std::get_if<loop::Define>(&stmt)) define->value = moved(define->value);
      if (auto* store = std::get_if<loop::Store>(&stmt)) store->value = moved(store->value);
      block->push_back(std::move(stmt));
    }
    return result;
  }

  const Kernel& a_;
  const Kernel& b_;
  std::vector<loop::AxisId> chain_;
  sym::Facts facts_;
};

}  // namespace

std::vector<Kernel> join_boxes(std::vector<Kernel> boxes) {
  for (size_t i = 0; i < boxes.size(); ++i)
    for (size_t k = i + 1; k < boxes.size(); ++k)
      if (std::optional<Kernel> both = Join(boxes[i], boxes[k]).run()) {
        boxes[i] = std::move(*both);
        boxes.erase(boxes.begin() + static_cast<std::ptrdiff_t>(k));
        break;
      }
  return boxes;
}

}  // namespace kerf::sched
