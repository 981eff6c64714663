#include "loop/walk.h"

namespace kerf::loop {

const Block* body_of(const Stmt& stmt) {
  if (const auto* loop = std::get_if<Loop>(&stmt)) return &loop->body;
  if (const auto* reduce = std::get_if<Reduce>(&stmt)) return &reduce->body;
  if (const auto* guard = std::get_if<Guard>(&stmt)) return &guard->body;
  return nullptr;
}

Block* body_of(Stmt& stmt) { return const_cast<Block*>(body_of(std::as_const(stmt))); }

std::span<const AxisId> axes_of(const Stmt& stmt) {
  if (const auto* loop = std::get_if<Loop>(&stmt)) return {&loop->axis, 1};
  if (const auto* reduce = std::get_if<Reduce>(&stmt)) return reduce->axes;
  return {};
}

std::vector<AxisId> axes_of(const Path& path) {
  std::vector<AxisId> axes;
  for (const Stmt* stmt : path)
    for (AxisId axis : axes_of(*stmt)) axes.push_back(axis);
  return axes;
}

std::vector<const Loop*> grid_loops(const Kernel& kernel, const Stmt& stmt) {
  std::vector<const Loop*> chain;
  const Stmt* next = &stmt;
  while (const auto* loop = std::get_if<Loop>(next)) {
    if (kernel.axes[loop->axis].role != Role::grid) break;
    chain.push_back(loop);
    if (loop->body.size() != 1) break;
    next = &loop->body[0];
  }
  return chain;
}

sym::Expr grid_extent(const Kernel& kernel) {
  sym::Expr total = kernel.context->constant(1);
  if (kernel.body.empty()) return total;
  std::vector<const Loop*> chain = grid_loops(kernel, kernel.body[0]);
  CHECK(chain.empty() || kernel.body.size() == 1, "kernel {} has several grids", kernel.name);
  sym::Facts facts = facts_of(kernel);
  for (const Loop* loop : chain) {
    sym::Expr extent = kernel.axes[loop->axis].extent;
    // Negative extents run nothing; two of them must not make a positive product.
    bool may_be_negative = sym::range_of(extent, facts).lo.value_or(-1) < 0;
    total = total * (may_be_negative ? sym::max(extent, kernel.context->constant(0)) : extent);
  }
  return total;
}

std::vector<ValueId> values_in(sym::Expr expr) {
  std::vector<ValueId> values;
  if (!expr.valid()) return values;
  std::vector<sym::Expr> symbols;
  sym::collect_symbols(expr, symbols);
  for (sym::Expr symbol : symbols)
    if (symbol.symbol().kind == sym::SymbolKind::value) values.emplace_back(symbol.symbol().value);
  return values;
}

std::vector<ValueId> operands_of(const Value& value) {
  std::vector<ValueId> used = value.operands;
  for (ValueId id : values_in(value.index)) used.push_back(id);
  return used;
}

std::vector<ValueId> uses_of(const Kernel& kernel, const Stmt& stmt) {
  if (const auto* define = std::get_if<Define>(&stmt)) return operands_of(kernel.values[define->value]);
  if (const auto* guard = std::get_if<Guard>(&stmt)) return {guard->condition};
  std::vector<ValueId> used;
  if (const auto* store = std::get_if<Store>(&stmt)) {
    used = values_in(store->index);
    used.push_back(store->value);
  } else if (const auto* reduce = std::get_if<Reduce>(&stmt)) {
    for (const Reduction& part : reduce->parts)
      used.insert(used.end(), part.yields.begin(), part.yields.end());
  }
  return used;
}

std::vector<ValueId> defined_by(const Stmt& stmt) {
  std::vector<ValueId> defined;
  if (const auto* define = std::get_if<Define>(&stmt)) {
    defined.push_back(define->value);
  } else if (const auto* reduce = std::get_if<Reduce>(&stmt)) {
    for (const Reduction& part : reduce->parts) defined.push_back(part.result);
  }
  return defined;
}

IdVector<ValueId, int> use_counts(const Kernel& kernel) {
  IdVector<ValueId, int> counts(kernel.values.size(), 0);
  walk(kernel.body, [&](const Stmt& stmt, const Path&) {
    for (ValueId value : uses_of(kernel, stmt)) ++counts[value];
  });
  return counts;
}

bool may_fail(const Value& value) {
  return value.kind == ValueKind::apply && (ops::info(value.op).flags & ops::kMayFail) &&
         !is_floating(value.dtype);
}

namespace {

// Substitutes the value symbols of an expression.
sym::Expr replace_in(sym::Expr expr, const IdVector<ValueId, ValueId>& map) {
  std::vector<sym::Substitution> substitutions;
  for (ValueId from : values_in(expr)) {
    if (map[from] == from) continue;
    sym::Context& context = expr.context();
    substitutions.push_back({context.value_symbol(from.index), context.value_symbol(map[from].index)});
  }
  return substitutions.empty() ? expr : sym::substitute(expr, substitutions);
}

}  // namespace

void replace_uses(Kernel& kernel, const IdVector<ValueId, ValueId>& map) {
  for (Value& value : kernel.values)
    for (ValueId& operand : value.operands) operand = map[operand];
  rewrite_expressions(kernel, [&](sym::Expr expr) { return replace_in(expr, map); });
  for_each_stmt(kernel.body, [&](Stmt& stmt) {
    if (auto* store = std::get_if<Store>(&stmt)) {
      store->value = map[store->value];
    } else if (auto* guard = std::get_if<Guard>(&stmt)) {
      guard->condition = map[guard->condition];
    } else if (auto* reduce = std::get_if<Reduce>(&stmt)) {
      for (Reduction& part : reduce->parts)
        for (ValueId& yield : part.yields) yield = map[yield];
    }
  });
}

void drop_buffer(Kernel& kernel, BufferId dropped, BufferId instead) {
  IdVector<BufferId, BufferId> map;
  IdVector<BufferId, Buffer> kept;
  for (BufferId id(0); id.index < kernel.buffers.size(); ++id.index)
    map.push_back(id == dropped ? BufferId() : kept.push_back(std::move(kernel.buffers[id])));
  if (instead.valid()) map[dropped] = map[instead];
  kernel.buffers = std::move(kept);
  for (Value& value : kernel.values)
    if (value.kind == ValueKind::load) value.buffer = map[value.buffer];
  for_each_stmt(kernel.body, [&](Stmt& stmt) {
    if (auto* store = std::get_if<Store>(&stmt)) store->buffer = map[store->buffer];
  });
}

}  // namespace kerf::loop
