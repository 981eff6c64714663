#include "sched/mask_loads.h"

#include <algorithm>
#include <optional>
#include <set>

#include "loop/walk.h"
#include "ops/scalar_op.h"

namespace kerf::sched {

using loop::Block;
using loop::Stmt;
using loop::ValueId;
using loop::ValueKind;

namespace {

// When a value is needed: always, under one mask, or (neither) never.
struct Demand {
  bool is_always = false;
  std::optional<ValueId> mask;

  void add(const Demand& other) {
    is_always = is_always || other.is_always || (mask && other.mask && *mask != *other.mask);
    if (!mask) mask = other.mask;
  }
};

class Masker {
 public:
  explicit Masker(loop::Kernel kernel) : kernel_(std::move(kernel)), demands_(kernel_.values.size()) {}

  loop::Kernel run() {
    find_demands();
    rewrite(kernel_.body);
    return std::move(kernel_);
  }

 private:
  // Users have higher numbers than what they use.
  void find_demands() {
    const Demand always{true, {}};
    loop::walk(kernel_.body, [&](const Stmt& stmt, const loop::Path&) {
      if (std::holds_alternative<loop::Define>(stmt)) return;
      for (ValueId used : loop::uses_of(kernel_, stmt)) demands_[used].add(always);
    });
    for (size_t n = kernel_.values.size(); n-- > 0;) {
      const ValueId id(n);
      const loop::Value& value = kernel_.values[id];
      bool passes_on = value.kind == ValueKind::apply && !loop::may_fail(value);
      if (passes_on && value.op == ops::ScalarOp::where) {
        demands_[value.operands[0]].add(always);
        demands_[value.operands[1]].add({false, value.operands[0]});
        demands_[value.operands[2]].add(demands_[id]);
      } else {
        for (ValueId used : loop::operands_of(value)) demands_[used].add(passes_on ? demands_[id] : always);
      }
    }
  }

  void rewrite(Block& block) {
    std::set<ValueId> later;  // defined in this block, not yet there
    for (const Stmt& stmt : block)
      if (const auto* define = std::get_if<loop::Define>(&stmt)) later.insert(define->value);
    Block out;
    for (Stmt& stmt : block) {
      if (Block* body = loop::body_of(stmt)) rewrite(*body);
      const auto* define = std::get_if<loop::Define>(&stmt);
      if (define && !later.erase(define->value)) continue;  // moved up
      if (define) mask(define->value, later, out);
      out.push_back(std::move(stmt));
    }
    block = std::move(out);
  }

  // Makes the load masked if it is one to be; `out` then gets the mask first.
  void mask(ValueId id, std::set<ValueId>& later, Block& out) {
    const loop::Value& load = kernel_.values[id];
    const Demand& demand = demands_[id];
    if (load.kind != ValueKind::load || !load.operands.empty() || !is_floating(load.dtype) ||
        demand.is_always || !demand.mask || !later.contains(*demand.mask))
      return;
    std::vector<ValueId> needed;  // by number: what is used first
    if (!collect(*demand.mask, load, later, needed)) return;
    std::sort(needed.begin(), needed.end());
    for (ValueId value : needed) {
      later.erase(value);
      out.push_back(loop::Define{value});
    }
    loop::Value zero{
        .kind = ValueKind::constant, .dtype = load.dtype, .literal = Scalar::of(load.dtype, 0.0)};
    ValueId other = kernel_.values.push_back(std::move(zero));
    out.push_back(loop::Define{other});
    kernel_.values[id].operands = {*demand.mask, other};
  }

  // What the mask is made of in this block; false if memory is read for it, or if the load moves along an axis of it.
  bool collect(ValueId id, const loop::Value& load, const std::set<ValueId>& later,
               std::vector<ValueId>& needed) const {
    const loop::Value& value = kernel_.values[id];
    if (value.kind == ValueKind::load || value.kind == ValueKind::reduced || loop::may_fail(value))
      return false;
    if (value.kind == ValueKind::index) {
      std::vector<sym::Expr> symbols;
      sym::collect_symbols(value.index, symbols);
      for (sym::Expr symbol : symbols)
        if (symbol.symbol().kind == sym::SymbolKind::value || sym::mentions(load.index, symbol)) return false;
    }
    if (later.contains(id) && std::find(needed.begin(), needed.end(), id) == needed.end())
      needed.push_back(id);
    return std::ranges::all_of(value.operands,
                               [&](ValueId operand) { return collect(operand, load, later, needed); });
  }

  loop::Kernel kernel_;
  IdVector<ValueId, Demand> demands_;
};

}  // namespace

loop::Kernel mask_loads(loop::Kernel kernel) { return Masker(std::move(kernel)).run(); }

}  // namespace kerf::sched
