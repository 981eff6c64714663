#include "loop/verify.h"

#include <algorithm>
#include <bit>
#include <set>

#include "loop/print.h"
#include "loop/walk.h"
#include "sym/text.h"

namespace kerf::loop {

namespace {

using sym::SymbolKind;

bool is_identifier(std::string_view name) {
  auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
  auto rest = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  return !name.empty() && letter(name[0]) && std::ranges::all_of(name, rest);
}

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

std::vector<sym::Expr> symbols_in(sym::Expr expr) {
  std::vector<sym::Expr> symbols;
  sym::collect_symbols(expr, symbols);
  return symbols;
}

// One pass over the statements in program order. Checks that need valid ids come after `ids_are_valid`.
class Verifier {
 public:
  explicit Verifier(const Kernel& kernel)
      : kernel_(kernel),
        values_(kernel.values.size(), State::undefined),
        axes_(kernel.axes.size(), State::undefined),
        stored_(kernel.buffers.size(), 0) {}

  std::vector<std::string> run() {
    if (!ids_are_valid()) return std::move(errors_);
    check_declarations();
    if (!errors_.empty()) return std::move(errors_);
    facts_ = facts_of(kernel_);
    check_outermost();
    check(kernel_.body);
    return std::move(errors_);
  }

 private:
  enum class State : char { undefined, visible, closed };

  template <class... Args>
  void error(std::string_view invariant, fmt::format_string<Args...> format, Args&&... args) {
    std::string message = fmt::format("{}: {}", invariant, fmt::format(format, std::forward<Args>(args)...));
    if (current_) message += fmt::format(", in: {}", to_text(kernel_, *current_));
    errors_.push_back(std::move(message));
  }

  // --- ids, names, sizes, shapes

  bool ids_are_valid() {
    CHECK(kernel_.context, "kernel {} has no context", kernel_.name);
    auto in_range = [](auto id, const auto& table) { return id.valid() && id.index < table.size(); };
    auto set = [&](sym::Expr expr) { return expr.valid() && &expr.context() == kernel_.context; };
    auto value = [&](ValueId id) { return in_range(id, kernel_.values); };
    bool valid = std::ranges::all_of(kernel_.sizes, [&](const Size& size) { return set(size.symbol); });
    for (const Buffer& buffer : kernel_.buffers) valid &= std::ranges::all_of(buffer.shape, set);
    for (const Axis& axis : kernel_.axes) valid &= set(axis.symbol) && set(axis.extent);
    for (const Value& v : kernel_.values) {
      valid &= std::ranges::all_of(v.operands, value);
      if (v.kind == ValueKind::index || v.kind == ValueKind::load) valid &= set(v.index);
      if (v.kind == ValueKind::load) valid &= in_range(v.buffer, kernel_.buffers);
    }
    walk(kernel_.body, [&](const Stmt& stmt, const Path&) {
      for (AxisId axis : axes_of(stmt)) valid &= in_range(axis, kernel_.axes);
      if (const auto* store = std::get_if<Store>(&stmt))
        valid &= set(store->index) && in_range(store->buffer, kernel_.buffers);
      if (const auto* define = std::get_if<Define>(&stmt); define && !value(define->value)) {
        valid = false;  // its uses cannot be asked for
        return;
      }
      for (ValueId id : defined_by(stmt)) valid &= value(id);
      for (ValueId id : uses_of(kernel_, stmt)) valid &= value(id);
    });
    if (!valid)
      error("ids", "kernel {} has an id out of range, or an expression unset or of another context",
            kernel_.name);
    return valid;
  }

  void check_declarations() {
    if (!is_identifier(kernel_.name)) error("names", "kernel name '{}' is not an identifier", kernel_.name);
    std::set<std::string> names;
    for (const Buffer& buffer : kernel_.buffers) {
      if (!is_identifier(buffer.name)) error("names", "buffer name '{}' is not an identifier", buffer.name);
      if (!names.insert(buffer.name).second) error("names", "two buffers are called '{}'", buffer.name);
    }
    std::set<const sym::Node*> symbols;
    auto declare = [&](sym::Expr symbol, SymbolKind kind, std::string_view what) {
      if (!symbol.is_symbol() || symbol.symbol().kind != kind) {
        error("sizes", "{} is not {} symbol", sym::to_text(symbol), what);
      } else if (!symbols.insert(symbol.node()).second) {
        error("sizes", "{} is declared twice", sym::to_text(symbol));
      }
    };
    for (const Size& size : kernel_.sizes) {
      declare(size.symbol, SymbolKind::size, "a size");
      sizes_.insert(size.symbol.node());
    }
    for (const Axis& axis : kernel_.axes) declare(axis.symbol, SymbolKind::axis, "an axis");
    for (const Buffer& buffer : kernel_.buffers) check_shape(buffer);
  }

  void check_shape(const Buffer& buffer) {
    for (sym::Expr extent : buffer.shape) {
      for (sym::Expr symbol : symbols_in(extent))
        if (!sizes_.contains(symbol.node()))
          error("shapes", "the shape of {} mentions {}, which is not a size of the kernel", buffer.name,
                sym::to_text(symbol));
      if (buffer.mode == BufferMode::local && !extent.is_constant())
        error("shapes", "the shape of the local buffer {} is not constant", buffer.name);
    }
  }

  // --- grid and barriers

  bool is_grid(const Stmt& stmt) const {
    const auto* loop = std::get_if<Loop>(&stmt);
    return loop && kernel_.axes[loop->axis].role == Role::grid;
  }

  void check_outermost() {
    bool has_grid = std::ranges::any_of(kernel_.body, [&](const Stmt& stmt) { return is_grid(stmt); });
    bool expects_grid = true;
    for (const Stmt& stmt : kernel_.body) {
      current_ = &stmt;
      bool is_barrier = std::holds_alternative<Barrier>(stmt);
      if (has_grid && !is_barrier && !is_grid(stmt)) error("grid", "a statement beside a grid loop");
      if (has_grid && is_grid(stmt) && !expects_grid)
        error("grid", "two grid loops without a barrier between");
      if (is_barrier && (!has_grid || expects_grid)) error("barrier", "a barrier that follows no grid loop");
      expects_grid = is_barrier;
    }
    if (has_grid && expects_grid) error("barrier", "a barrier that no grid loop follows");
    current_ = nullptr;
  }

  // Grid loops continue the chain only as the sole statement of a grid loop.
  void check_grid(const Stmt& stmt) {
    if (!is_grid(stmt)) return;
    const Axis& axis = kernel_.axes[std::get<Loop>(stmt).axis];
    bool continues = std::ranges::all_of(path_, [&](const Stmt* outer) { return is_grid(*outer); });
    if (!continues) error("grid", "a grid loop inside a loop that is not");
    if (!path_.empty() && is_grid(*path_.back()) && body_of(*path_.back())->size() != 1)
      error("grid", "a statement beside a grid loop");
    for (sym::Expr symbol : symbols_in(axis.extent))
      if (symbol.symbol().kind != SymbolKind::size)
        error("grid", "the extent of a grid loop mentions {}", sym::to_text(symbol));
  }

  // --- statements

  void check(const Block& block) {
    std::vector<ValueId> defined;
    for (const Stmt& stmt : block) {
      current_ = &stmt;
      std::visit([this](const auto& s) { check(s); }, stmt);
      current_ = &stmt;
      for (ValueId value : defined_by(stmt)) {
        define(stmt, value);
        defined.push_back(value);
      }
    }
    for (ValueId value : defined) values_[value] = State::closed;
    current_ = nullptr;
  }

  void define(const Stmt& stmt, ValueId id) {
    const Value& value = kernel_.values[id];
    if (values_[id] != State::undefined) error("definition", "%{} is defined twice", id.index);
    bool reduced = value.kind == ValueKind::reduced;
    if (reduced != std::holds_alternative<Reduce>(stmt))
      error("definition", "%{} is {} result of a reduce", id.index, reduced ? "the" : "not the");
    values_[id] = State::visible;
  }

  void check(const Define& define) {
    const Value& value = kernel_.values[define.value];
    for (ValueId operand : value.operands) use(operand);
    switch (value.kind) {
      case ValueKind::constant: return check_constant(value);
      case ValueKind::index:
        check_expression(value.index, false);
        if (value.dtype != DType::i64) error("types", "an index value is {}, not i64", to_text(value.dtype));
        return;
      case ValueKind::load: return check_load(value);
      case ValueKind::apply: return check_apply(value);
      case ValueKind::reduced: return;  // reported by `define`
    }
  }

  void check(const Store& store) {
    const Buffer& buffer = kernel_.buffers[store.buffer];
    use(store.value);
    check_access(store.buffer, store.index, true);
    DType dtype = kernel_.values[store.value].dtype;
    if (dtype != buffer.dtype)
      error("stores", "{} into {} of {}", to_text(dtype), buffer.name, to_text(buffer.dtype));
    if (buffer.mode == BufferMode::in) error("stores", "{} is only read", buffer.name);
    if (kernel_.buffers[store.buffer].mode == BufferMode::local)
      for (AxisId open : open_)
        if (kernel_.axes[open].role == Role::vector && !sym::mentions(store.index, kernel_.axes[open].symbol))
          error("lanes", "all lanes of {} share {}[{}]", sym::to_text(kernel_.axes[open].symbol),
                kernel_.buffers[store.buffer].name, sym::to_text(store.index));
    if (store.mode == StoreMode::add) {
      if (dtype == DType::b1) error("stores", "bool cannot be added");
      check_written(store.buffer);
    } else {
      stored_[store.buffer] = 1;
    }
  }

  void check(const Loop& loop) {
    open(loop.axis);
    check_grid(*current_);
    check_body(loop.body);
    close(loop.axis);
  }

  void check(const Reduce& reduce) {
    const Stmt* stmt = current_;
    if (reduce.axes.empty() || reduce.parts.empty()) error("reduces", "a reduce needs an axis and a part");
    for (AxisId axis : reduce.axes) {
      open(axis);
      if (kernel_.axes[axis].role == Role::grid) error("grid", "a reduce axis cannot be grid");
    }
    // Yields are read inside the body's scope, at its end.
    path_.push_back(stmt);
    check(reduce.body);
    for (const Stmt& inner : reduce.body)
      for (ValueId value : defined_by(inner)) values_[value] = State::visible;
    current_ = stmt;
    for (const Reduction& part : reduce.parts) check_part(part);
    for (const Stmt& inner : reduce.body)
      for (ValueId value : defined_by(inner)) values_[value] = State::closed;
    path_.pop_back();
    for (AxisId axis : reduce.axes) close(axis);
  }

  void check(const Guard& guard) {
    use(guard.condition);
    if (kernel_.values[guard.condition].dtype != DType::b1) error("masks", "the condition is not bool");
    ++guards_;
    check_body(guard.body);
    --guards_;
  }

  // Placement is checked for the outermost block as a whole.
  void check(const Barrier&) {
    if (!path_.empty()) error("barrier", "a barrier inside another statement");
  }

  void check_body(const Block& body) {
    path_.push_back(current_);
    check(body);
    path_.pop_back();
  }

  // --- axes

  void open(AxisId id) {
    const Axis& axis = kernel_.axes[id];
    if (axes_[id] != State::undefined) error("axes", "{} is opened twice", sym::to_text(axis.symbol));
    for (sym::Expr symbol : symbols_in(axis.extent))
      if (!is_open(symbol))
        error("axes", "the extent of {} mentions {}", sym::to_text(axis.symbol), sym::to_text(symbol));
    for (AxisId open : open_)
      if (kernel_.axes[open].role == Role::vector && sym::mentions(axis.extent, kernel_.axes[open].symbol))
        error("roles", "the extent of {} differs between lanes", sym::to_text(axis.symbol));
    axes_[id] = State::visible;
    open_.push_back(id);
    bool is_vector = axis.role == Role::vector;
    if (axis.role == Role::tile ? axis.lanes < 1
        : is_vector             ? axis.lanes < 1 || !std::has_single_bit(static_cast<unsigned>(axis.lanes))
                                : axis.lanes != 0)
      error("roles", "{} has {} lanes", sym::to_text(axis.symbol), axis.lanes);
    auto is_open_vector = [&](AxisId open) { return kernel_.axes[open].role == Role::vector; };
    if (is_vector && std::ranges::count_if(open_, is_open_vector) > 1)
      error("roles", "{} is a vector axis inside a vector axis", sym::to_text(axis.symbol));
  }

  void close(AxisId id) {
    axes_[id] = State::closed;
    open_.pop_back();
  }

  bool is_open(sym::Expr symbol) const {
    if (sizes_.contains(symbol.node())) return true;
    return std::ranges::any_of(open_, [&](AxisId axis) { return kernel_.axes[axis].symbol == symbol; });
  }

  // --- values and expressions

  void use(ValueId value) {
    if (values_[value] == State::visible) return;
    error("scope", "%{} is {}", value.index,
          values_[value] == State::closed ? "used outside the block that defines it"
                                          : "used before its definition");
  }

  void check_expression(sym::Expr expr, bool values_allowed) {
    for (sym::Expr symbol : symbols_in(expr)) {
      if (symbol.symbol().kind != SymbolKind::value) {
        if (!is_open(symbol))
          error("expressions", "{} is neither a size nor an open axis", sym::to_text(symbol));
      } else if (ValueId value(symbol.symbol().value); !values_allowed) {
        error("expressions", "%{} in an expression of axes and sizes", value.index);
      } else {
        use(value);
        if (!is_integer(kernel_.values[value].dtype))
          error("expressions", "%{} is not an integer", value.index);
      }
    }
  }

  void check_constant(const Value& value) {
    const Scalar& literal = value.literal;
    Scalar stored = is_floating(value.dtype) ? Scalar::of(value.dtype, literal.f)
                                             : Scalar::of_int(value.dtype, literal.i);
    if (literal.dtype != value.dtype || stored != literal)
      error("constants", "the literal is not a {}", to_text(value.dtype));
  }

  void check_load(const Value& value) {
    const Buffer& buffer = kernel_.buffers[value.buffer];
    bool masked = !value.operands.empty();
    check_access(value.buffer, value.index, !masked);
    if (value.dtype != buffer.dtype)
      error("types", "a load of {} from {} of {}", to_text(value.dtype), buffer.name, to_text(buffer.dtype));
    check_written(value.buffer);
    if (!masked) return;
    if (value.operands.size() != 2) return error("masks", "a masked load has a mask and an other");
    if (kernel_.values[value.operands[0]].dtype != DType::b1) error("masks", "the mask is not bool");
    if (DType other = kernel_.values[value.operands[1]].dtype; other != buffer.dtype)
      error("masks", "the other of a masked load is {}, not {}", to_text(other), to_text(buffer.dtype));
  }

  void check_apply(const Value& value) {
    const ops::OpInfo& row = ops::info(value.op);
    std::vector<DType> operands;
    for (ValueId operand : value.operands) operands.push_back(kernel_.values[operand].dtype);
    if (operands.size() != static_cast<size_t>(row.arity))
      return error("types", "{} takes {} operands", row.text, row.arity);
    if (row.types == ops::Typing::conversion) {
      if (value.op == ops::ScalarOp::bitcast) check_bitcast(operands[0], value.dtype);
      return;
    }
    if (ops::result_dtype(value.op, operands) == value.dtype) return;
    std::string text;
    for (DType dtype : operands) text += fmt::format("{} ", to_text(dtype));
    error("types", "{} over {}giving {} is not allowed", row.text, text, to_text(value.dtype));
  }

  void check_bitcast(DType from, DType to) {
    if (byte_size(from) != byte_size(to) || from == DType::b1 || to == DType::b1 || is_half(from) ||
        is_half(to))
      error("types", "bitcast from {} to {}", to_text(from), to_text(to));
  }

  void check_part(const Reduction& part) {
    const ops::ReduceInfo& row = ops::info(part.op);
    for (ValueId yield : part.yields) use(yield);
    if (part.yields.size() != static_cast<size_t>(row.yields))
      return error("reduces", "{} yields {} values", row.text, row.yields);
    DType dtype = kernel_.values[part.yields[0]].dtype;
    bool arithmetic = part.op == ops::ReduceOp::sum || part.op == ops::ReduceOp::prod;
    if (is_half(dtype) || (row.boolean && dtype != DType::b1) || (arithmetic && dtype == DType::b1))
      error("reduces", "{} over {}", row.text, to_text(dtype));
    if (row.has_index() && kernel_.values[part.yields[1]].dtype != DType::i64)
      error("reduces", "the index that {} yields is not i64", row.text);
    DType result = row.index_result ? DType::i64 : dtype;
    if (kernel_.values[part.result].dtype != result)
      error("reduces", "%{} is not {}", part.result.index, to_text(result));
  }

  // --- accesses

  void check_access(BufferId buffer, sym::Expr index, bool unconditional) {
    size_t before = errors_.size();
    check_expression(index, true);
    if (!unconditional || guards_ > 0 || errors_.size() != before) return;
    // A loop that may be empty at all sizes proves nothing about its body.
    for (AxisId axis : open_) {
      sym::Range extent = sym::range_of(kernel_.axes[axis].extent, facts_);
      if (extent.hi && *extent.hi <= 0) return;
    }
    sym::Range range = sym::range_of(index, facts_);
    bool is_below = range.hi && *range.hi < 0;
    bool is_above = sym::provably_less_equal(element_count(kernel_, buffer), index, facts_);
    if (is_below || is_above)
      error("bounds", "{}[{}] is outside the buffer in every iteration", kernel_.buffers[buffer].name,
            sym::to_text(index));
  }

  void check_written(BufferId id) {
    const Buffer& buffer = kernel_.buffers[id];
    bool is_ours = buffer.mode == BufferMode::out || buffer.mode == BufferMode::local;
    if (is_ours && !stored_[id]) error("unwritten", "{} is read before a store to it", buffer.name);
  }

  const Kernel& kernel_;
  sym::Facts facts_;
  std::set<const sym::Node*> sizes_;
  IdVector<ValueId, State> values_;
  IdVector<AxisId, State> axes_;
  IdVector<BufferId, char> stored_;
  std::vector<AxisId> open_;
  Path path_;
  int guards_ = 0;
  const Stmt* current_ = nullptr;  // for messages
  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> verify(const Kernel& kernel) { return Verifier(kernel).run(); }

void check_valid(const Kernel& kernel, std::string_view when) {
  std::vector<std::string> errors = verify(kernel);
  CHECK(errors.empty(), "kernel {} is not valid {}: {}", kernel.name, when, errors[0]);
}

}  // namespace kerf::loop
