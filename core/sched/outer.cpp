#include "sched/outer.h"

#include <algorithm>

#include "loop/walk.h"
#include "sched/profit.h"
#include "sym/simplify.h"

namespace kerf::sched {

using loop::AxisId;
using sym::Expr;

std::vector<AxisId> outer_chain(const loop::Kernel& kernel) {
  std::vector<AxisId> chain;
  const loop::Block* block = &kernel.body;
  while (block->size() == 1) {
    const auto* loop = std::get_if<loop::Loop>(&block->front());
    if (!loop) break;
    chain.push_back(loop->axis);
    block = &loop->body;
  }
  return chain;
}

std::vector<PlacedAccess> placed_accesses(const loop::Kernel& kernel) {
  std::vector<PlacedAccess> accesses;
  sym::Facts facts = loop::facts_of(kernel);
  loop::for_each_access(kernel,
                        [&](loop::BufferId buffer, Expr index, const loop::Path& path, bool is_store) {
                          if (kernel.buffers[buffer].mode == loop::BufferMode::local) return;
                          std::vector<AxisId> axes = loop::axes_of(path);
                          int64_t bytes = byte_size(kernel.buffers[buffer].dtype);
                          for (AxisId axis : axes)
                            bytes *= std::max<int64_t>(hinted(kernel.axes[axis].extent, facts), 1);
                          accesses.push_back({buffer, index, std::move(axes), bytes, is_store});
                        });
  return accesses;
}

int cost_of(const loop::Value& value) {
  return value.kind == loop::ValueKind::apply ? ops::info(value.op).cost : 0;
}

std::vector<InnerLoop> innermost_loops(const loop::Kernel& kernel) {
  size_t outer = outer_chain(kernel).size();
  std::vector<InnerLoop> loops;
  loop::walk(kernel.body, [&](const loop::Stmt& stmt, const loop::Path& path) {
    const loop::Block* body = loop::body_of(stmt);
    if (!body || loop::axes_of(stmt).empty() || path.size() < outer) return;
    bool has_inner = std::any_of(body->begin(), body->end(),
                                 [](const loop::Stmt& s) { return !loop::axes_of(s).empty(); });
    if (has_inner) return;
    InnerLoop inner;
    inner.is_reduce = std::holds_alternative<loop::Reduce>(stmt);
    loop::Path inside(path.begin() + static_cast<std::ptrdiff_t>(outer), path.end());
    if (!inner.is_reduce) inner.axes = loop::axes_of(inside);
    for (AxisId axis : loop::axes_of(stmt)) inner.axes.push_back(axis);
    for (const loop::Stmt& s : *body)
      if (const auto* define = std::get_if<loop::Define>(&s))
        inner.cost = std::max(inner.cost, cost_of(kernel.values[define->value]));
    loops.push_back(std::move(inner));
  });
  return loops;
}

bool is_independent(const loop::Kernel& kernel, AxisId id) {
  const loop::Axis& axis = kernel.axes[id];
  sym::Facts facts = loop::facts_of(kernel);
  // index = c*axis + low + high with 0 <= low < c and c*extent dividing high: the axis can be read off the index.
  auto determines = [&](Expr index) {
    auto affine = sym::affine_in(index, axis.symbol);
    if (!affine || !sym::provably_less(index.context().constant(0), affine->coefficient, facts)) return false;
    Expr period = affine->coefficient * axis.extent, low = index.context().constant(0);
    for (const sym::Term& term : sym::terms_of(affine->rest)) {
      Expr whole = term.rest * term.coefficient;
      if (!sym::provably_divides(period, whole, facts)) low = low + whole;
    }
    return sym::provably_less_equal(index.context().constant(0), low, facts) &&
           sym::provably_less(low, affine->coefficient, facts);
  };
  std::vector<PlacedAccess> accesses = placed_accesses(kernel);
  return std::all_of(accesses.begin(), accesses.end(), [&](const PlacedAccess& access) {
    bool written =
        access.is_store || std::any_of(accesses.begin(), accesses.end(), [&](const PlacedAccess& other) {
          return other.is_store && other.buffer == access.buffer;
        });
    return !written || determines(access.index);
  });
}

}  // namespace kerf::sched
