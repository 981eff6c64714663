#include "sched/fold_known.h"

#include "loop/renumber.h"
#include "loop/walk.h"

namespace kerf::sched {

using loop::ValueId;
using loop::ValueKind;
using ops::ScalarOp;
using sym::Expr;

namespace {

class Folder {
 public:
  explicit Folder(loop::Kernel kernel) : kernel_(std::move(kernel)), facts_(loop::facts_of(kernel_)) {}

  loop::Kernel run() {
    IdVector<ValueId, ValueId> map(kernel_.values.size());
    for (ValueId id(0); id < kernel_.values.end_id(); ++id.index) map[id] = id;
    loop::walk(kernel_.body, [&](const loop::Stmt& stmt, const loop::Path&) {
      const auto* define = std::get_if<loop::Define>(&stmt);
      if (!define) return;
      loop::Value& value = kernel_.values[define->value];
      for (ValueId& operand : value.operands) operand = map[operand];
      if (auto same = fold(value)) map[define->value] = *same;
    });
    loop::replace_uses(kernel_, map);
    return loop::remove_dead_values(kernel_);
  }

 private:
  std::optional<bool> truth(ValueId id) const {
    const loop::Value& value = kernel_.values[id];
    if (value.kind != ValueKind::constant || value.dtype != DType::b1) return std::nullopt;
    return value.literal.i != 0;
  }

  static void become(loop::Value& value, bool constant) {
    value = loop::Value{
        .kind = ValueKind::constant, .dtype = DType::b1, .literal = Scalar::of_int(DType::b1, constant)};
  }

  // Changes the value to what it is here; or says which other value it is.
  std::optional<ValueId> fold(loop::Value& value) {
    if (value.kind == ValueKind::load && !value.operands.empty()) {
      auto reads = truth(value.operands[0]);
      if (reads && !*reads) return value.operands[1];
      if (reads) value.operands.clear();
      return std::nullopt;
    }
    if (value.kind != ValueKind::apply) return std::nullopt;
    if (is_comparison(value.op)) {
      auto a = index_of(kernel_, value.operands[0]), b = index_of(kernel_, value.operands[1]);
      if (auto known = a && b ? compare(value.op, *a, *b) : std::nullopt) become(value, *known);
      return std::nullopt;
    }
    return fold_logic(value);
  }

  std::optional<bool> compare(ScalarOp op, Expr a, Expr b) const {
    auto less = [&](Expr x, Expr y) { return sym::provably_less(x, y, facts_); };
    auto most = [&](Expr x, Expr y) { return sym::provably_less_equal(x, y, facts_); };
    auto decided = [](bool yes, bool no) {
      return yes ? std::optional(true) : no ? std::optional(false) : std::nullopt;
    };
    switch (op) {
      case ScalarOp::lt: return decided(less(a, b), most(b, a));
      case ScalarOp::le: return decided(most(a, b), less(b, a));
      case ScalarOp::gt: return decided(less(b, a), most(a, b));
      case ScalarOp::ge: return decided(most(b, a), less(a, b));
      case ScalarOp::eq: return decided(sym::provably_equal(a, b, facts_), less(a, b) || less(b, a));
      case ScalarOp::ne: return decided(less(a, b) || less(b, a), sym::provably_equal(a, b, facts_));
      default: return std::nullopt;
    }
  }

  std::optional<ValueId> fold_logic(loop::Value& value) {
    if (value.op == ScalarOp::where) {
      auto takes = truth(value.operands[0]);
      return takes ? std::optional(value.operands[*takes ? 1 : 2]) : std::nullopt;
    }
    if (value.dtype != DType::b1) return std::nullopt;
    if (value.op == ScalarOp::not_) {
      if (auto known = truth(value.operands[0])) become(value, !*known);
      return std::nullopt;
    }
    if (value.op != ScalarOp::and_ && value.op != ScalarOp::or_) return std::nullopt;
    bool decides = value.op == ScalarOp::or_;  // the value that settles the result
    for (size_t i = 0; i < 2; ++i) {
      auto known = truth(value.operands[i]);
      if (known && *known == decides) return value.operands[i];
      if (known) return value.operands[1 - i];
    }
    return std::nullopt;
  }

  loop::Kernel kernel_;
  sym::Facts facts_;
};

}  // namespace

bool is_comparison(ScalarOp op) { return ops::info(op).types == ops::Typing::comparison; }

std::optional<Expr> index_of(const loop::Kernel& kernel, ValueId id) {
  const loop::Value& value = kernel.values[id];
  if (value.kind == ValueKind::index) return value.index;
  if (value.kind == ValueKind::constant && is_integer(value.dtype))
    return kernel.context->constant(value.literal.i);
  return std::nullopt;
}

loop::Kernel fold_known(loop::Kernel kernel) { return Folder(std::move(kernel)).run(); }

}  // namespace kerf::sched
