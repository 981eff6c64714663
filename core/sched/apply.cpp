// Carries out a Schedule.
#include <fmt/format.h>

#include <algorithm>

#include "loop/walk.h"
#include "sched/outer.h"
#include "sched/schedule.h"
#include "sym/simplify.h"

namespace kerf::sched {

using loop::AxisId;
using sym::Expr;

namespace {

// The block inside the outer chain, and the chain's axes.
loop::Block& innermost_block(loop::Block& body, size_t depth) {
  loop::Block* block = &body;
  for (size_t i = 0; i < depth; ++i) block = &std::get<loop::Loop>(block->front()).body;
  return *block;
}

void set_chain(loop::Kernel& kernel, const std::vector<AxisId>& axes) {
  loop::Block inside = std::move(innermost_block(kernel.body, outer_chain(kernel).size()));
  for (size_t i = axes.size(); i-- > 0;) {
    loop::Block outer;
    outer.push_back(loop::Loop{axes[i], std::move(inside)});
    inside = std::move(outer);
  }
  kernel.body = std::move(inside);
}

struct Halves {
  AxisId whole, outer, inner;
};

Halves split(loop::Kernel& kernel, const Split& decision) {
  const loop::Axis axis = kernel.axes[decision.axis];
  const std::string& name = axis.symbol.symbol().name;
  sym::Context& context = *kernel.context;
  Expr outer = context.symbol(name + "_o", sym::SymbolKind::axis);
  Expr inner = context.symbol(name + "_i", sym::SymbolKind::axis);
  Expr chunk = context.constant(decision.chunk);
  sym::Facts facts = loop::facts_of(kernel);
  Expr steps = sym::simplify(sym::ceil_div(axis.extent, chunk), facts);
  facts.set_extent(outer, steps);
  Expr length =
      sym::provably_divides(chunk, axis.extent, facts) ? chunk : sym::min(chunk, axis.extent - chunk * outer);
  Halves halves{decision.axis, kernel.axes.push_back({outer, steps}), kernel.axes.push_back({inner, length})};
  facts.set_extent(inner, length);
  sym::Substitution change[] = {{axis.symbol, chunk * outer + inner}};
  loop::rewrite_expressions(kernel, [&](Expr e) {
    return sym::mentions(e, axis.symbol) ? sym::simplify(sym::substitute(e, change), facts) : e;
  });
  std::vector<AxisId> chain;
  for (AxisId id : outer_chain(kernel)) {
    if (id == decision.axis) {
      chain.push_back(halves.outer);
      chain.push_back(halves.inner);
    } else {
      chain.push_back(id);
    }
  }
  set_chain(kernel, chain);
  return halves;
}

// Splits both and puts the outer halves around the inner ones.
std::pair<Halves, Halves> tile(loop::Kernel& kernel, const Tile& decision) {
  Halves rows = split(kernel, {decision.rows, decision.size});
  Halves columns = split(kernel, {decision.columns, decision.size});
  std::vector<AxisId> chain = outer_chain(kernel);
  chain.resize(chain.size() - 4);
  chain.insert(chain.end(), {rows.outer, columns.outer, rows.inner, columns.inner});
  set_chain(kernel, chain);
  return {rows, columns};
}

// Local buffers that are filled inside the outer loop `axis`, which becomes a vector loop of at most `width` iterations:
// every lane gets elements of its own, neighbouring lanes side by side.
void privatize_rows(loop::Kernel& kernel, AxisId axis, int64_t width) {
  Expr lane = kernel.axes[axis].symbol;
  Expr count = kernel.context->constant(width);
  auto widened = [&](loop::BufferId buffer, Expr index) {
    return kernel.buffers[buffer].mode == loop::BufferMode::local ? index * count + lane : index;
  };
  for (loop::Value& value : kernel.values)
    if (value.kind == loop::ValueKind::load) value.index = widened(value.buffer, value.index);
  loop::for_each_stmt(kernel.body, [&](loop::Stmt& stmt) {
    if (auto* store = std::get_if<loop::Store>(&stmt)) store->index = widened(store->buffer, store->index);
  });
  for (loop::Buffer& buffer : kernel.buffers)
    if (buffer.mode == loop::BufferMode::local) buffer.shape.push_back(count);
}

void reduce_last(loop::Kernel& kernel, AxisId axis) {
  loop::for_each_stmt(kernel.body, [&](loop::Stmt& stmt) {
    auto* reduce = std::get_if<loop::Reduce>(&stmt);
    if (!reduce) return;
    auto at = std::find(reduce->axes.begin(), reduce->axes.end(), axis);
    if (at != reduce->axes.end()) std::rotate(at, at + 1, reduce->axes.end());
  });
}

// A bound of the axis's extent; an outer vector axis always has a constant one.
int64_t longest(const loop::Kernel& kernel, AxisId axis) {
  sym::Range range = sym::range_of(kernel.axes[axis].extent, loop::facts_of(kernel));
  CHECK(range.hi, "vector axis {} of unknown extent", kernel.axes[axis].symbol.symbol().name);
  return *range.hi;
}

std::string role_text(const Bind& bind) {
  switch (bind.role) {
    case loop::Role::serial: return "serial";
    case loop::Role::grid: return "grid";
    case loop::Role::vector: return "vector";
    case loop::Role::unrolled: return "unrolled";
    case loop::Role::tile: return "tile";
  }
  UNREACHABLE("role {}", static_cast<int>(bind.role));
}

}  // namespace

loop::Kernel apply_schedule(const loop::Kernel& kernel, const Schedule& schedule) {
  loop::Kernel result = kernel;
  std::vector<Halves> splits;
  for (const Decision& decision : schedule.decisions) {
    if (const auto* order = std::get_if<OrderOuter>(&decision)) {
      set_chain(result, order->axes);
    } else if (const auto* one = std::get_if<Split>(&decision)) {
      splits.push_back(split(result, *one));
    } else if (const auto* two = std::get_if<Tile>(&decision)) {
      auto [rows, columns] = tile(result, *two);
      splits.insert(splits.end(), {rows, columns});
    } else if (const auto* last = std::get_if<ReduceLast>(&decision)) {
      reduce_last(result, last->axis);
    } else {
      const Bind& bind = std::get<Bind>(decision);
      AxisId axis = bind.axis;
      for (const Halves& halves : splits) {
        if (halves.whole != bind.axis) continue;
        if (bind.half == Bind::Half::outer) axis = halves.outer;
        if (bind.half == Bind::Half::inner) axis = halves.inner;
      }
      result.axes[axis].role = bind.role;
      result.axes[axis].lanes = bind.lanes;
      std::vector<AxisId> chain = outer_chain(result);
      if (bind.role == loop::Role::vector && std::find(chain.begin(), chain.end(), axis) != chain.end())
        privatize_rows(result, axis, longest(result, axis));
    }
  }
  return result;
}

std::string to_text(const Schedule& schedule, const loop::Kernel& kernel) {
  std::string text;
  auto name = [&](AxisId axis) { return kernel.axes[axis].symbol.symbol().name; };
  for (const Decision& decision : schedule.decisions) {
    if (const auto* order = std::get_if<OrderOuter>(&decision)) {
      text += "order";
      for (size_t i = 0; i < order->axes.size(); ++i) text += (i ? ", " : " ") + name(order->axes[i]);
    } else if (const auto* one = std::get_if<Split>(&decision)) {
      text += fmt::format("split {} by {}", name(one->axis), one->chunk);
    } else if (const auto* two = std::get_if<Tile>(&decision)) {
      text += fmt::format("tile {}, {} by {}", name(two->rows), name(two->columns), two->size);
    } else if (const auto* last = std::get_if<ReduceLast>(&decision)) {
      text += fmt::format("reduce_last {}", name(last->axis));
    } else {
      const Bind& bind = std::get<Bind>(decision);
      const char* half = bind.half == Bind::Half::outer ? "_o" : bind.half == Bind::Half::inner ? "_i" : "";
      text += fmt::format("{} {}{}", role_text(bind), name(bind.axis), half);
      if (bind.lanes) text += fmt::format(" {}", bind.lanes);
    }
    text += "\n";
  }
  return text;
}

}  // namespace kerf::sched
