#include "loop/build.h"

namespace kerf::loop {

KernelBuilder::KernelBuilder(sym::Context& context, std::string name) : blocks_(1) {
  kernel_.name = std::move(name);
  kernel_.context = &context;
}

sym::Expr KernelBuilder::add_size(std::string_view name, sym::Range range, sym::Modulus modulus) {
  sym::Expr symbol = kernel_.context->symbol(name, sym::SymbolKind::size);
  kernel_.sizes.push_back({symbol, range, modulus});
  return symbol;
}

void KernelBuilder::add_sizes(const std::vector<Size>& sizes) {
  kernel_.sizes.insert(kernel_.sizes.end(), sizes.begin(), sizes.end());
}

BufferId KernelBuilder::add_buffer(std::string name, DType dtype, std::vector<sym::Expr> shape,
                                   BufferMode mode) {
  return kernel_.buffers.push_back({std::move(name), dtype, std::move(shape), mode});
}

AxisId KernelBuilder::add_axis(std::string_view name, sym::Expr extent, Role role, int lanes) {
  auto is_taken = [&](std::string_view candidate) {
    std::optional<sym::Expr> known = kernel_.context->find_symbol(candidate);
    if (!known) return false;
    if (known->symbol().kind != sym::SymbolKind::axis) return true;
    for (const Axis& axis : kernel_.axes)
      if (axis.symbol == *known) return true;
    return false;
  };
  std::string unique(name);
  for (int number = 1; is_taken(unique); ++number) unique = fmt::format("{}_{}", name, number);
  sym::Expr symbol = kernel_.context->symbol(unique, sym::SymbolKind::axis);
  return kernel_.axes.push_back({symbol, extent, role, lanes});
}

ValueId KernelBuilder::define(Value value) {
  ValueId id = kernel_.values.push_back(std::move(value));
  add(Define{id});
  return id;
}

ValueId KernelBuilder::constant(DType dtype, double value) { return constant(Scalar::of(dtype, value)); }

ValueId KernelBuilder::constant(const Scalar& value) {
  return define({.kind = ValueKind::constant, .dtype = value.dtype, .literal = value});
}

ValueId KernelBuilder::index(sym::Expr expr) {
  return define({.kind = ValueKind::index, .dtype = DType::i64, .index = expr});
}

ValueId KernelBuilder::load(BufferId buffer, sym::Expr index) {
  DType dtype = kernel_.buffers[buffer].dtype;
  return define({.kind = ValueKind::load, .dtype = dtype, .index = index, .buffer = buffer});
}

ValueId KernelBuilder::load(BufferId buffer, sym::Expr index, ValueId mask, ValueId other) {
  DType dtype = kernel_.buffers[buffer].dtype;
  return define(
      {.kind = ValueKind::load, .dtype = dtype, .index = index, .buffer = buffer, .operands = {mask, other}});
}

ValueId KernelBuilder::apply(ops::ScalarOp op, std::vector<ValueId> operands) {
  std::vector<DType> dtypes;
  std::string text;
  for (ValueId operand : operands) {
    dtypes.push_back(dtype(operand));
    text += fmt::format(" {}", to_text(dtypes.back()));
  }
  std::optional<DType> result = ops::result_dtype(op, dtypes);
  CHECK(result, "{} over{} in kernel {}", ops::to_text(op), text, kernel_.name);
  return define({.kind = ValueKind::apply, .dtype = *result, .op = op, .operands = std::move(operands)});
}

ValueId KernelBuilder::cast(ValueId value, DType to) {
  if (dtype(value) == to) return value;
  return define({.kind = ValueKind::apply, .dtype = to, .op = ops::ScalarOp::cast, .operands = {value}});
}

ValueId KernelBuilder::bitcast(ValueId value, DType to) {
  if (dtype(value) == to) return value;
  return define({.kind = ValueKind::apply, .dtype = to, .op = ops::ScalarOp::bitcast, .operands = {value}});
}

sym::Expr KernelBuilder::as_expr(ValueId value) {
  CHECK(is_integer(dtype(value)), "%{} of kernel {} in an index is {}", value.index, kernel_.name,
        to_text(dtype(value)));
  return kernel_.context->value_symbol(value.index);
}

void KernelBuilder::store(BufferId buffer, sym::Expr index, ValueId value, StoreMode mode) {
  add(Store{buffer, index, value, mode});
}

void KernelBuilder::barrier() { add(Barrier{}); }

void KernelBuilder::open_loop(AxisId axis) {
  open_.push_back(Loop{axis, {}});
  blocks_.emplace_back();
}

void KernelBuilder::open_guard(ValueId condition) {
  open_.push_back(Guard{condition, {}});
  blocks_.emplace_back();
}

void KernelBuilder::open_reduce(std::vector<AxisId> axes) {
  open_.push_back(Reduce{std::move(axes), {}, {}});
  blocks_.emplace_back();
}

template <class T>
T KernelBuilder::close() {
  CHECK(!open_.empty() && std::holds_alternative<T>(open_.back()), "closing what is not open in kernel {}",
        kernel_.name);
  T stmt = std::move(std::get<T>(open_.back()));
  stmt.body = std::move(blocks_.back());
  open_.pop_back();
  blocks_.pop_back();
  return stmt;
}

void KernelBuilder::close_loop() { add(close<Loop>()); }
void KernelBuilder::close_guard() { add(close<Guard>()); }

std::vector<ValueId> KernelBuilder::close_reduce(const std::vector<Part>& parts) {
  auto reduce = close<Reduce>();
  std::vector<ValueId> results;
  for (const Part& part : parts) {
    DType result = ops::info(part.op).index_result ? DType::i64 : dtype(part.yields.at(0));
    results.push_back(kernel_.values.push_back({.kind = ValueKind::reduced, .dtype = result}));
    reduce.parts.push_back({part.op, results.back(), part.yields});
  }
  add(std::move(reduce));
  return results;
}

Kernel KernelBuilder::finish() {
  CHECK(open_.empty(), "kernel {} has an open loop, reduce or guard", kernel_.name);
  kernel_.body = std::move(blocks_.front());
  return std::move(kernel_);
}

}  // namespace kerf::loop
