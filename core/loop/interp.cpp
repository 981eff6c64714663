#include "loop/interp.h"

#include <array>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "loop/print.h"
#include "loop/rounding.h"
#include "loop/walk.h"
#include "sym/eval.h"
#include "sym/text.h"

namespace kerf::loop {

namespace {

// One element of a fold: the accumulator of a reduction part. Sums of floats are kept in f64 and rounded once, at the end.
struct Accumulator {
  Scalar value;
  int64_t index = std::numeric_limits<int64_t>::max();  // where the fold has one
  FoldBound bound;
};

bool sums_in_f64(const Reduction& part, DType dtype) {
  return part.op == ops::ReduceOp::sum && is_floating(dtype);
}

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, std::span<const int64_t> sizes, std::span<void* const> buffers,
              target::KernelError& error, std::span<double* const> bounds)
      : kernel_(kernel),
        error_(error),
        values_(kernel.values.size()),
        memory_(kernel.buffers.size()),
        has_bounds_(!bounds.empty()),
        bounds_(kernel.values.size(), 0.0) {
    CHECK(sizes.size() == kernel.sizes.size(), "{} sizes for kernel {}", sizes.size(), kernel.name);
    for (size_t i = 0; i < sizes.size(); ++i) symbols_[kernel.sizes[i].symbol.node()->symbol] = sizes[i];
    bind(buffers, bounds);
  }

  void run(std::optional<GridRange> grid) {
    bool has_grid = !kernel_.body.empty() && !grid_loops(kernel_, kernel_.body[0]).empty();
    if (!has_grid) {
      if (grid && (grid->begin > 0 || grid->end < 1)) return;
      clear_locals();
      return run(kernel_.body);
    }
    CHECK(!grid || kernel_.body.size() == 1, "part of the grid of a kernel with barriers");
    for (const Stmt& stmt : kernel_.body)
      if (!std::holds_alternative<Barrier>(stmt)) run_grid(grid_loops(kernel_, stmt), grid);
  }

 private:
  struct Memory {
    char* data = nullptr;
    int64_t elements = 0;
    std::vector<char> own;     // local buffers
    double* bounds = nullptr;  // of its elements
    std::vector<double> own_bounds;
  };

  void bind(std::span<void* const> buffers, std::span<double* const> bounds) {
    size_t next = 0;
    for (BufferId id(0); id.index < kernel_.buffers.size(); ++id.index) {
      Memory& memory = memory_[id];
      memory.elements = evaluate(element_count(kernel_, id));
      if (kernel_.buffers[id].mode == BufferMode::local) {
        memory.own.resize(static_cast<size_t>(memory.elements * byte_size(kernel_.buffers[id].dtype)));
        memory.data = memory.own.data();
        if (has_bounds_) memory.own_bounds.resize(static_cast<size_t>(memory.elements));
        memory.bounds = memory.own_bounds.data();
      } else {
        CHECK(next < buffers.size(), "{} buffers for kernel {}", buffers.size(), kernel_.name);
        if (has_bounds_) memory.bounds = bounds[next];
        memory.data = static_cast<char*>(buffers[next++]);
      }
    }
    CHECK(next == buffers.size(), "{} buffers for kernel {}", buffers.size(), kernel_.name);
  }

  void clear_locals() {
    for (Memory& memory : memory_) std::ranges::fill(memory.own, '\xff');
  }

  void run_grid(const std::vector<const Loop*>& chain, std::optional<GridRange> grid) {
    std::vector<int64_t> extents;
    int64_t total = 1;
    for (const Loop* loop : chain) {
      extents.push_back(extent(loop->axis));
      total *= extents.back();
    }
    for (int64_t flat = grid ? grid->begin : 0; flat < (grid ? grid->end : total); ++flat) {
      CHECK(flat >= 0 && flat < total, "grid iteration {} of {} in kernel {}", flat, total, kernel_.name);
      int64_t rest = flat;
      for (size_t i = chain.size(); i-- > 0; rest /= extents[i]) set_axis(chain[i]->axis, rest % extents[i]);
      clear_locals();
      run(chain.back()->body);
    }
  }

  // --- expressions

  int64_t evaluate(sym::Expr expr) const {
    auto value_of = [this](const sym::Symbol& symbol) {
      if (symbol.kind == sym::SymbolKind::value) return values_[ValueId(symbol.value)].i;
      return symbols_.at(&symbol);
    };
    std::optional<int64_t> value = sym::evaluate(expr, value_of);
    CHECK(value, "kernel {}: {} overflows or divides by zero", kernel_.name, sym::to_text(expr));
    return *value;
  }

  int64_t extent(AxisId axis) const { return std::max<int64_t>(evaluate(kernel_.axes[axis].extent), 0); }

  void set_axis(AxisId axis, int64_t value) { symbols_[kernel_.axes[axis].symbol.node()->symbol] = value; }

  // --- statements

  void run(const Block& block) {
    for (const Stmt& stmt : block) {
      current_ = &stmt;
      std::visit([this](const auto& s) { run(s); }, stmt);
    }
  }

  void run(const Define& define) { values_[define.value] = compute(define.value); }

  void run(const Store& store) {
    const Scalar& value = values_[store.value];
    int64_t element = checked_index(store.buffer, store.index);
    char* data = memory_[store.buffer].data;
    double* bounds = memory_[store.buffer].bounds;
    if (store.mode == StoreMode::assign) {
      if (bounds) bounds[element] = bounds_[store.value];
      return store_scalar(data, element, value);
    }
    DType wide = compute_dtype(value.dtype);
    Scalar before = convert(load_scalar(data, element, value.dtype), wide);
    Scalar sum = ops::combine(ops::ReduceOp::sum, before, convert(value, wide));
    Scalar rounded = convert(sum, value.dtype);
    store_scalar(data, element, rounded);
    if (!bounds) return;
    double bound = bound_of(ops::ScalarOp::add, sum, std::array{before, convert(value, wide)},
                            std::array{bounds[element], bounds_[store.value]});
    bounds[element] = value.dtype == wide
                          ? bound
                          : bound_of(ops::ScalarOp::cast, rounded, std::array{sum}, std::array{bound});
  }

  void run(const Loop& loop) {
    for (int64_t i = 0, end = extent(loop.axis); i < end; ++i) {
      set_axis(loop.axis, i);
      run(loop.body);
    }
  }

  void run(const Guard& guard) {
    if (values_[guard.condition].i) run(guard.body);
  }

  void run(const Barrier&) {}

  void run(const Reduce& reduce) {
    std::vector<Accumulator> accumulators;
    for (const Reduction& part : reduce.parts) {
      DType dtype = kernel_.values[part.yields[0]].dtype;
      accumulators.push_back({ops::identity(part.op, sums_in_f64(part, dtype) ? DType::f64 : dtype),
                              std::numeric_limits<int64_t>::max(), FoldBound(part.op)});
    }
    fold(reduce, 0, accumulators);
    for (size_t i = 0; i < reduce.parts.size(); ++i) {
      const Reduction& part = reduce.parts[i];
      const Accumulator& total = accumulators[i];
      DType dtype = kernel_.values[part.result].dtype;
      values_[part.result] = ops::info(part.op).index_result ? Scalar::of_int(DType::i64, total.index)
                             : sums_in_f64(part, dtype)      ? Scalar::of(dtype, total.value.f)
                                                             : total.value;
      if (has_bounds_ && !ops::info(part.op).index_result) bounds_[part.result] = total.bound.bound(dtype);
    }
  }

  // Runs the axes from `depth` inwards; the body and one step of each fold at the innermost.
  void fold(const Reduce& reduce, size_t depth, std::vector<Accumulator>& accumulators) {
    if (depth == reduce.axes.size()) {
      run(reduce.body);
      for (size_t i = 0; i < reduce.parts.size(); ++i) step(reduce.parts[i], accumulators[i]);
      return;
    }
    AxisId axis = reduce.axes[depth];
    for (int64_t i = 0, end = extent(axis); i < end; ++i) {
      set_axis(axis, i);
      fold(reduce, depth + 1, accumulators);
    }
  }

  void step(const Reduction& part, Accumulator& total) {
    const Scalar& value = values_[part.yields[0]];
    Scalar before = total.value;
    if (sums_in_f64(part, value.dtype)) {
      total.value.f += value.f;
    } else if (!ops::info(part.op).has_index()) {
      total.value = ops::combine(part.op, total.value, value);
    } else if (int64_t index = values_[part.yields[1]].i;
               ops::replaces(part.op, value, index, total.value, total.index)) {
      total.value = value;
      total.index = index;
    }
    if (has_bounds_) total.bound.step(before, value, total.value, bounds_[part.yields[0]]);
  }

  // --- values

  Scalar compute(ValueId id) {
    const Value& value = kernel_.values[id];
    switch (value.kind) {
      case ValueKind::constant: return value.literal;
      case ValueKind::index: return Scalar::of_int(DType::i64, evaluate(value.index));
      case ValueKind::load: return load(id, value);
      case ValueKind::apply: return apply(id, value);
      case ValueKind::reduced: break;
    }
    UNREACHABLE("%{} of kernel {} is defined by a reduce", id.index, kernel_.name);
  }

  Scalar load(ValueId id, const Value& value) {
    if (!value.operands.empty() && !values_[value.operands[0]].i) {
      bounds_[id] = bounds_[value.operands[1]];
      return values_[value.operands[1]];
    }
    const Memory& memory = memory_[value.buffer];
    int64_t element = checked_index(value.buffer, value.index);
    if (has_bounds_)
      bounds_[id] = is_uncertain(value.index) ? kUnknown : memory.bounds ? memory.bounds[element] : 0;
    return load_scalar(memory.data, element, value.dtype);
  }

  // Other roundings may lead to another address.
  bool is_uncertain(sym::Expr index) const {
    bool result = false;
    sym::evaluate(index, [&](const sym::Symbol& symbol) {
      if (symbol.kind != sym::SymbolKind::value) return symbols_.at(&symbol);
      result |= bounds_[ValueId(symbol.value)] != 0;
      return values_[ValueId(symbol.value)].i;
    });
    return result;
  }

  int64_t checked_index(BufferId buffer, sym::Expr index) const {
    int64_t element = evaluate(index);
    const Memory& memory = memory_[buffer];
    CHECK(element >= 0 && element < memory.elements,
          "kernel {}: index {} outside the {} elements of {}, in: {}", kernel_.name, element, memory.elements,
          kernel_.buffers[buffer].name, to_text(kernel_, *current_));
    return element;
  }

  Scalar apply(ValueId id, const Value& value) {
    std::vector<Scalar> operands;
    for (ValueId operand : value.operands) operands.push_back(values_[operand]);
    if (ops::fails(value.op, value.dtype, operands)) report(id, value, operands);
    Scalar result = ops::evaluate(value.op, value.dtype, operands);
    if (has_bounds_) {
      std::vector<double> bounds;
      for (ValueId operand : value.operands) bounds.push_back(bounds_[operand]);
      bounds_[id] = bound_of(value.op, result, operands, bounds);
    }
    return result;
  }

  void report(ValueId id, const Value& value, const std::vector<Scalar>& operands) {
    if (error_.code != target::KernelError::kNone) return;
    bool is_index = ops::info(value.op).types == ops::Typing::index_check;
    error_.code = is_index ? target::KernelError::kIndex : target::KernelError::kDivision;
    error_.index = is_index ? operands[0].i : 0;
    error_.bound = is_index ? operands[1].i : 0;
    error_.value = id.index;
  }

  const Kernel& kernel_;
  target::KernelError& error_;
  std::unordered_map<const sym::Symbol*, int64_t> symbols_;  // sizes, and axes once set
  IdVector<ValueId, Scalar> values_;
  IdVector<BufferId, Memory> memory_;
  bool has_bounds_;
  IdVector<ValueId, double> bounds_;
  const Stmt* current_ = nullptr;  // for messages
};

}  // namespace

void interpret(const Kernel& kernel, std::span<const int64_t> sizes, std::span<void* const> buffers,
               target::KernelError& error, std::optional<GridRange> grid, std::span<double* const> bounds) {
  CHECK(bounds.empty() || bounds.size() == buffers.size(), "{} bounds for {} buffers", bounds.size(),
        buffers.size());
  Interpreter(kernel, sizes, buffers, error, bounds).run(grid);
}

}  // namespace kerf::loop
