#include "loop/renumber.h"

#include <functional>
#include <unordered_map>

#include "loop/walk.h"

namespace kerf::loop {

namespace {

// Removes bottom-up and last to first: a definition comes before its uses and no value survives an iteration,
// so one pass sees every use of a value before the value's definition.
class DeadValues {
 public:
  explicit DeadValues(const Kernel& kernel) : kernel_(kernel), live_(kernel.values.size(), 0) {}

  Block sweep(const Block& block) {
    Block kept;
    for (size_t i = block.size(); i-- > 0;) std::visit([&](const auto& stmt) { keep(stmt, kept); }, block[i]);
    return {std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend())};
  }

 private:
  void mark(const std::vector<ValueId>& values) {
    for (ValueId value : values) live_[value] = 1;
  }

  void keep(const Define& define, Block& kept) {
    const Value& value = kernel_.values[define.value];
    if (!live_[define.value] && !may_fail(value)) return;
    mark(operands_of(value));
    kept.push_back(define);
  }

  void keep(const Store& store, Block& kept) {
    mark(values_in(store.index));
    mark({store.value});
    kept.push_back(store);
  }

  void keep(const Barrier& barrier, Block& kept) { kept.push_back(barrier); }

  void keep(const Loop& loop, Block& kept) {
    Block body = sweep(loop.body);
    if (!body.empty()) kept.push_back(Loop{loop.axis, std::move(body)});
  }

  void keep(const Guard& guard, Block& kept) {
    Block body = sweep(guard.body);
    if (body.empty()) return;
    mark({guard.condition});
    kept.push_back(Guard{guard.condition, std::move(body)});
  }

  void keep(const Reduce& reduce, Block& kept) {
    Reduce live{reduce.axes, {}, {}};
    for (const Reduction& part : reduce.parts) {
      if (!live_[part.result]) continue;
      mark(part.yields);
      live.parts.push_back(part);
    }
    live.body = sweep(reduce.body);
    if (!live.parts.empty()) {
      kept.push_back(std::move(live));
    } else if (!live.body.empty()) {
      kept.push_back(as_loops(std::move(live)));
    }
  }

  // Nothing is folded any more but the body still acts.
  static Stmt as_loops(Reduce reduce) {
    Block body = std::move(reduce.body);
    for (size_t i = reduce.axes.size(); i-- > 0;) {
      Loop loop{reduce.axes[i], std::move(body)};
      body.clear();
      body.push_back(std::move(loop));
    }
    return std::move(body.front());
  }

  const Kernel& kernel_;
  IdVector<ValueId, char> live_;
};

// Copies expressions to `target`, naming each symbol as `rename` says.
class ExpressionCopy {
 public:
  using Rename = std::function<sym::Expr(sym::Expr)>;
  ExpressionCopy(sym::Context& target, Rename rename) : target_(target), rename_(std::move(rename)) {}

  sym::Expr operator()(sym::Expr expr) {
    if (!expr.valid()) return expr;
    if (auto found = done_.find(expr.node()); found != done_.end()) return found->second;
    sym::Expr copied = copy(expr);
    done_.emplace(expr.node(), copied);
    return copied;
  }

 private:
  sym::Expr copy(sym::Expr expr) {
    if (expr.is_constant()) return target_.constant(expr.constant());
    if (expr.is_symbol()) return rename_(expr);
    std::vector<sym::Expr> operands;
    for (size_t i = 0; i < expr.size(); ++i) operands.push_back((*this)(expr.operand(i)));
    switch (expr.kind()) {
      case sym::Kind::add: return sym::add(target_, operands);
      case sym::Kind::mul: return sym::mul(target_, operands);
      case sym::Kind::floor_div: return sym::floor_div(operands[0], operands[1]);
      case sym::Kind::mod: return sym::mod(operands[0], operands[1]);
      case sym::Kind::min: return fold(operands, [](sym::Expr a, sym::Expr b) { return sym::min(a, b); });
      case sym::Kind::max: return fold(operands, [](sym::Expr a, sym::Expr b) { return sym::max(a, b); });
      case sym::Kind::constant:
      case sym::Kind::symbol: break;
    }
    UNREACHABLE("expression kind");
  }

  template <class Combine>
  static sym::Expr fold(const std::vector<sym::Expr>& operands, Combine combine) {
    sym::Expr result = operands[0];
    for (size_t i = 1; i < operands.size(); ++i) result = combine(result, operands[i]);
    return result;
  }

  sym::Context& target_;
  Rename rename_;
  std::unordered_map<const sym::Node*, sym::Expr> done_;
};

// New ids by the order of the walk; ids that nothing defines stay invalid.
struct Numbering {
  IdVector<ValueId, ValueId> values;
  IdVector<AxisId, AxisId> axes;
  std::vector<ValueId> value_order;
  std::vector<AxisId> axis_order;
};

Numbering number(const Kernel& kernel) {
  Numbering n{
      IdVector<ValueId, ValueId>(kernel.values.size()), IdVector<AxisId, AxisId>(kernel.axes.size()), {}, {}};
  auto open = [&](const Stmt& stmt, const Path&) {
    for (AxisId axis : axes_of(stmt)) {
      n.axes[axis] = AxisId(n.axis_order.size());
      n.axis_order.push_back(axis);
    }
  };
  auto define = [&](const Stmt& stmt, const Path&) {
    for (ValueId value : defined_by(stmt)) {
      n.values[value] = ValueId(n.value_order.size());
      n.value_order.push_back(value);
    }
  };
  walk(kernel.body, open, define);
  return n;
}

void renumber_stmts(Block& block, const Numbering& n, ExpressionCopy& copy) {
  for_each_stmt(block, [&](Stmt& stmt) {
    if (auto* define = std::get_if<Define>(&stmt)) {
      define->value = n.values[define->value];
    } else if (auto* store = std::get_if<Store>(&stmt)) {
      store->index = copy(store->index);
      store->value = n.values[store->value];
    } else if (auto* loop = std::get_if<Loop>(&stmt)) {
      loop->axis = n.axes[loop->axis];
    } else if (auto* guard = std::get_if<Guard>(&stmt)) {
      guard->condition = n.values[guard->condition];
    } else if (auto* reduce = std::get_if<Reduce>(&stmt)) {
      for (AxisId& axis : reduce->axes) axis = n.axes[axis];
      for (Reduction& part : reduce->parts) {
        part.result = n.values[part.result];
        for (ValueId& yield : part.yields) yield = n.values[yield];
      }
    }
  });
}

// The kernel in canonical numbers, its expressions in `target`. `rename` maps size and axis symbols.
Kernel rebuild(const Kernel& kernel, const Numbering& n, sym::Context& target,
               ExpressionCopy::Rename rename) {
  ExpressionCopy copy(target, [&](sym::Expr symbol) {
    if (symbol.symbol().kind != sym::SymbolKind::value) return rename(symbol);
    return target.value_symbol(n.values[ValueId(symbol.symbol().value)].index);
  });
  Kernel result{kernel.name, &target, kernel.sizes, kernel.buffers, {}, {}, kernel.body, kernel.sources};
  for (Size& size : result.sizes) size.symbol = copy(size.symbol);
  for (Buffer& buffer : result.buffers)
    for (sym::Expr& extent : buffer.shape) extent = copy(extent);
  for (AxisId axis : n.axis_order) {
    const Axis& old = kernel.axes[axis];
    result.axes.push_back({copy(old.symbol), copy(old.extent), old.role, old.lanes});
  }
  for (ValueId id : n.value_order) {
    Value value = kernel.values[id];
    value.index = copy(value.index);
    for (ValueId& operand : value.operands) operand = n.values[operand];
    result.values.push_back(std::move(value));
  }
  renumber_stmts(result.body, n, copy);
  return result;
}

}  // namespace

Kernel remove_dead_values(const Kernel& kernel) {
  Kernel result = kernel;
  result.body = DeadValues(kernel).sweep(kernel.body);
  return renumber(result);
}

Kernel renumber(const Kernel& kernel) {
  return rebuild(kernel, number(kernel), *kernel.context, [](sym::Expr symbol) { return symbol; });
}

Kernel normalize(const Kernel& kernel, sym::Context& target) {
  Numbering n = number(kernel);
  std::unordered_map<const sym::Node*, sym::Expr> names;
  auto name = [&](sym::Expr symbol, char letter, size_t number, sym::SymbolKind kind) {
    names.emplace(symbol.node(), target.symbol(fmt::format("{}{}", letter, number), kind));
  };
  for (size_t i = 0; i < kernel.sizes.size(); ++i)
    name(kernel.sizes[i].symbol, 's', i, sym::SymbolKind::size);
  for (size_t i = 0; i < n.axis_order.size(); ++i)
    name(kernel.axes[n.axis_order[i]].symbol, 'a', i, sym::SymbolKind::axis);
  Kernel result = rebuild(kernel, n, target, [&](sym::Expr symbol) {
    auto found = names.find(symbol.node());
    CHECK(found != names.end(), "symbol {} is not of kernel {}", symbol.symbol().name, kernel.name);
    return found->second;
  });
  result.name.assign(1, 'k');
  result.sources.clear();
  size_t count = 0;
  for (Buffer& buffer : result.buffers) buffer.name = fmt::format("b{}", count++);
  return result;
}

}  // namespace kerf::loop
