// A row kept from one inner loop to the next becomes the computation of its elements in both.
//
//   for r0 < n                        for r0 < n
//     %1 = exp(load x[r0])              %1 = exp(load x[r0])
//     store row[r0], %1                 ...
//   for r1 < n                        for r1 < n
//     %2 = load row[r1]                 %2 = exp(load x[r1])
#include <map>
#include <set>

#include "axis/coordinates.h"
#include "loop/renumber.h"
#include "loop/walk.h"
#include "sched/tile_kernel.h"
#include "sym/simplify.h"

namespace kerf::sched {

using loop::AxisId;
using loop::ValueId;
using sym::Expr;

namespace {

class Recomputer {
 public:
  explicit Recomputer(const loop::Kernel& kernel)
      : kernel_(kernel), coordinates_(axis::coordinates_of(kernel)), facts_(loop::facts_of(kernel)) {}

  loop::Kernel run() {
    visit(kernel_.body, {});
    if (copies_.empty()) return std::move(kernel_);
    IdVector<ValueId, ValueId> map(kernel_.values.size());
    for (size_t i = 0; i < kernel_.values.size(); ++i) map[ValueId(i)] = ValueId(i);
    for (const auto& [from, to] : copies_) map[from] = to;
    loop::replace_uses(kernel_, map);
    kernel_.body = loop::rewrite_block(std::move(kernel_.body), [&](loop::Stmt stmt, loop::Block& out) {
      const auto* store = std::get_if<loop::Store>(&stmt);
      if (!store || kernel_.buffers[store->buffer].mode != loop::BufferMode::local)
        out.push_back(std::move(stmt));
    });
    return loop::remove_dead_values(kernel_);
  }

 private:
  // What a store wrote: the value, and the block in which it and what it is made of are defined.
  struct Written {
    ValueId value;
    size_t block;
  };
  using Place = std::pair<loop::BufferId, const sym::Node*>;

  Place place(loop::BufferId buffer, Expr index) const {
    return {buffer, sym::simplify(sym::substitute(index, coordinates_.to_symbols), facts_).node()};
  }

  bool is_own(loop::BufferId buffer) const {
    loop::BufferMode mode = kernel_.buffers[buffer].mode;
    return mode == loop::BufferMode::local || mode == loop::BufferMode::out;
  }

  void visit(loop::Block& block, const std::vector<AxisId>& axes) {
    size_t id = blocks_++;
    loop::Block out;
    for (loop::Stmt& stmt : block) {
      if (const auto* define = std::get_if<loop::Define>(&stmt)) {
        if (copies(define->value, id, axes, out)) continue;
        home_[define->value] = id;
      } else if (const auto* store = std::get_if<loop::Store>(&stmt)) {
        if (is_own(store->buffer)) written_[place(store->buffer, store->index)] = {store->value, id};
      } else if (loop::Block* body = loop::body_of(stmt)) {
        std::vector<AxisId> inside = axes;
        for (AxisId axis : loop::axes_of(stmt)) inside.push_back(axis);
        visit(*body, inside);
      }
      out.push_back(std::move(stmt));
    }
    block = std::move(out);
  }

  // A load of what another block wrote: its value is computed here.
  bool copies(ValueId id, size_t block, const std::vector<AxisId>& axes, loop::Block& out) {
    const loop::Value& value = kernel_.values[id];
    if (value.kind != loop::ValueKind::load || !value.operands.empty() || !is_own(value.buffer)) return false;
    auto found = written_.find(place(value.buffer, value.index));
    if (found == written_.end()) return false;
    const Written written = found->second;
    if (written.block == block) {
      copies_[id] = current(written.value);
      return true;
    }
    std::map<ValueId, ValueId> done;
    copies_[id] = copy(written.value, written.block, block, axes, done, out);
    return true;
  }

  ValueId current(ValueId id) const {
    auto found = copies_.find(id);
    return found == copies_.end() ? id : found->second;
  }

  ValueId copy(ValueId id, size_t from, size_t to, const std::vector<AxisId>& axes,
               std::map<ValueId, ValueId>& done, loop::Block& out) {
    id = current(id);
    auto home = home_.find(id);
    if (home == home_.end() || home->second != from) return id;  // visible here too
    if (auto found = done.find(id); found != done.end()) return found->second;
    loop::Value value = kernel_.values[id];
    for (ValueId& operand : value.operands) operand = copy(operand, from, to, axes, done, out);
    if (value.index.valid()) {
      std::vector<sym::Substitution> map;
      for (ValueId used : loop::values_in(value.index))
        map.push_back({kernel_.context->value_symbol(used.index),
                       kernel_.context->value_symbol(copy(used, from, to, axes, done, out).index)});
      for (AxisId axis : axes)
        for (AxisId same : coordinates_.list[coordinates_.of[axis]].axes)
          if (same != axis) map.push_back({kernel_.axes[same].symbol, kernel_.axes[axis].symbol});
      value.index = sym::substitute(value.index, map);
    }
    ValueId fresh = kernel_.values.push_back(std::move(value));
    home_[fresh] = to;
    out.push_back(loop::Define{fresh});
    return done[id] = fresh;
  }

  loop::Kernel kernel_;
  axis::Coordinates coordinates_;
  sym::Facts facts_;
  size_t blocks_ = 0;
  std::map<ValueId, size_t> home_;
  std::map<Place, Written> written_;
  std::map<ValueId, ValueId> copies_;
};

}  // namespace

loop::Kernel recompute_rows(const loop::Kernel& kernel) { return Recomputer(kernel).run(); }

}  // namespace kerf::sched
