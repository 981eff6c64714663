#include "sched/nest_copy.h"

#include "sym/simplify.h"

namespace kerf::sched {

using loop::ValueId;
using loop::ValueKind;
using sym::Expr;

NestCopy::NestCopy(loop::KernelBuilder& builder, const Nest& nest, sym::Facts facts,
                   std::function<loop::BufferId(loop::BufferId)> buffer_of)
    : builder_(builder), nest_(nest), facts_(std::move(facts)), buffer_of_(std::move(buffer_of)) {}

Expr NestCopy::place(Expr index) const {
  std::vector<sym::Substitution> map = axes_;
  for (ValueId value : loop::values_in(index))
    map.push_back(
        {builder_.kernel().context->value_symbol(value.index), builder_.as_expr(copied_.at(value))});
  return sym::simplify(sym::substitute(index, map), facts_);
}

ValueId NestCopy::copy_load(const loop::Value& value) {
  loop::BufferId buffer = buffer_of_(value.buffer);
  if (value.operands.empty()) return builder_.load(buffer, place(value.index));
  return builder_.load(buffer, place(value.index), at(value.operands[0]), at(value.operands[1]));
}

ValueId NestCopy::copy_apply(const loop::Value& value) {
  std::vector<ValueId> operands;
  for (ValueId operand : value.operands) operands.push_back(at(operand));
  if (value.op == ops::ScalarOp::cast) return builder_.cast(operands[0], value.dtype);
  if (value.op == ops::ScalarOp::bitcast) return builder_.bitcast(operands[0], value.dtype);
  return builder_.apply(value.op, std::move(operands));
}

void NestCopy::copy(const std::vector<ValueId>& values) {
  for (ValueId id : values) {
    const loop::Value& value = nest_.kernel->values[id];
    switch (value.kind) {
      case ValueKind::constant: set(id, builder_.constant(value.literal)); break;
      case ValueKind::index: set(id, builder_.index(place(value.index))); break;
      case ValueKind::load: set(id, copy_load(value)); break;
      case ValueKind::apply: set(id, copy_apply(value)); break;
      case ValueKind::reduced: break;  // set when the fold closes
    }
  }
}

}  // namespace kerf::sched
