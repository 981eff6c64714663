#include "loop/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "sym/text.h"

namespace kerf::loop {

namespace {

// The symbol of that name; fails where the context knows the name as something else.
sym::Expr symbol(base::Lexer& lexer, sym::Context& context, const std::string& name, sym::SymbolKind kind) {
  std::optional<sym::Expr> known = context.find_symbol(name);
  if (known && known->symbol().kind != kind)
    lexer.fail(fmt::format("'{}' is already the name of {}", name,
                           known->symbol().kind == sym::SymbolKind::size ? "a size" : "an axis"));
  return context.symbol(name, kind);
}

DType parse_dtype(base::Lexer& lexer) {
  if (std::optional<DType> dtype = dtype_from_text(lexer.peek().text)) {
    lexer.next();
    return *dtype;
  }
  lexer.fail("expected a dtype");
}

void parse_clause(base::Lexer& lexer, Size& size) {
  if (lexer.accept("in")) {
    lexer.expect("[");
    size.range.lo = lexer.expect_integer();
    lexer.expect(",");
    size.range.hi = lexer.expect_integer();
    lexer.expect("]");
  } else if (lexer.accept(">=")) {
    size.range.lo = lexer.expect_integer();
  } else if (lexer.accept("<=")) {
    size.range.hi = lexer.expect_integer();
  } else if (lexer.accept("=")) {
    size.modulus = {0, lexer.expect_integer()};
  } else if (lexer.accept("mod")) {
    size.modulus.modulus = lexer.expect_integer();
    if (size.modulus.modulus < 1) lexer.fail("expected a modulus of 1 or more");
    lexer.expect("=");
    size.modulus.remainder = lexer.expect_integer();
  }
}

class KernelParser {
 public:
  KernelParser(base::Lexer& lexer, sym::Context& context) : lexer_(lexer) { kernel_.context = &context; }

  Kernel parse() {
    int column = lexer_.peek().column;
    header();
    kernel_.body = block(column);
    return std::move(kernel_);
  }

 private:
  void header() {
    lexer_.expect("kernel");
    kernel_.name = lexer_.expect_identifier("the kernel's name");
    lexer_.expect("(");
    if (!lexer_.accept(")")) {
      do buffer();
      while (lexer_.accept(","));
      lexer_.expect(")");
    }
    if (lexer_.accept("given")) kernel_.sizes = parse_sizes(lexer_, *kernel_.context);
    // Shapes come before the sizes they mention.
    for (const Buffer& buffer : kernel_.buffers)
      for (sym::Expr extent : buffer.shape) check_sizes(extent);
  }

  void check_sizes(sym::Expr expr) {
    std::vector<sym::Expr> mentioned;
    sym::collect_symbols(expr, mentioned);
    for (sym::Expr symbol : mentioned)
      if (!is_size(symbol))
        lexer_.fail(fmt::format("'{}' of a shape is not among the sizes given", sym::to_text(symbol)));
  }

  bool is_size(sym::Expr symbol) const {
    return std::ranges::any_of(kernel_.sizes, [&](const Size& size) { return size.symbol == symbol; });
  }

  // A keyword only if another word follows: a buffer may be called `out`.
  bool accept_keyword(std::string_view word) {
    return lexer_.peek(1).kind == base::TokenKind::identifier && lexer_.accept(word);
  }

  void buffer() {
    Buffer buffer;
    if (accept_keyword("out")) {
      buffer.mode = BufferMode::out;
    } else if (accept_keyword("inout")) {
      buffer.mode = BufferMode::inout;
    } else if (accept_keyword("local")) {
      buffer.mode = BufferMode::local;
    }
    buffer.non_temporal = accept_keyword("non_temporal");
    buffer.name = lexer_.expect_identifier("a buffer");
    lexer_.expect(":");
    buffer.dtype = parse_dtype(lexer_);
    buffer.shape = shape();
    if (!buffers_.emplace(buffer.name, kernel_.buffers.end_id()).second)
      lexer_.fail(fmt::format("a second buffer '{}'", buffer.name));
    kernel_.buffers.push_back(std::move(buffer));
  }

  std::vector<sym::Expr> shape() {
    auto size = [&](base::Lexer& lexer, const std::string& name) {
      return symbol(lexer, *kernel_.context, name, sym::SymbolKind::size);
    };
    std::vector<sym::Expr> extents;
    lexer_.expect("[");
    if (lexer_.accept("]")) return extents;
    do extents.push_back(sym::parse_expr(lexer_, *kernel_.context, size));
    while (lexer_.accept(","));
    lexer_.expect("]");
    return extents;
  }

  // All statements deeper than `parent`; they begin in one column, each on its line. A reduce's yield is
  // left.
  Block block(int parent) {
    Block statements;
    int column = lexer_.peek().column;
    while (lexer_.in_block(parent) && !lexer_.is("yield")) {
      if (!lexer_.peek().begins_line) lexer_.fail("expected the end of the line");
      if (lexer_.peek().column != column) lexer_.fail("this line is not indented as those above it");
      statements.push_back(statement(column));
    }
    return statements;
  }

  Stmt statement(int column) {
    if (lexer_.peek().kind == base::TokenKind::value) return definition(column);
    if (lexer_.accept("store")) return store(StoreMode::assign);
    if (lexer_.accept("add")) return store(StoreMode::add);
    if (lexer_.accept("barrier")) return Barrier{};
    if (lexer_.accept("for")) {
      AxisId opened = axis();
      return Loop{opened, block(column)};
    }
    if (lexer_.accept("if")) {
      ValueId condition = use();
      return Guard{condition, block(column)};
    }
    lexer_.fail("expected a statement");
  }

  Stmt store(StoreMode mode) {
    Store store{.buffer = buffer_use(), .mode = mode};
    store.index = index_in_brackets();
    lexer_.expect(",");
    store.value = use();
    return store;
  }

  BufferId buffer_use() {
    auto found = buffers_.find(lexer_.peek().text);
    if (found == buffers_.end()) lexer_.fail("expected a buffer of this kernel");
    lexer_.next();
    return found->second;
  }

  sym::Expr index_in_brackets() {
    lexer_.expect("[");
    sym::Expr index = expression();
    lexer_.expect("]");
    return index;
  }

  sym::Expr expression() {
    return sym::parse_expr(lexer_, *kernel_.context, [this](base::Lexer& lexer, const std::string& name) {
      if (name.starts_with('%')) return kernel_.context->value_symbol(find_value(name.substr(1)).index);
      std::optional<sym::Expr> known = kernel_.context->find_symbol(name);
      if (!known || !(is_size(*known) || is_axis(*known)))
        lexer.fail(fmt::format("'{}' is not a size or axis", name));
      return *known;
    });
  }

  bool is_axis(sym::Expr symbol) const {
    return std::ranges::any_of(kernel_.axes, [&](const Axis& axis) { return axis.symbol == symbol; });
  }

  AxisId axis() {
    Axis axis;
    std::string name = lexer_.expect_identifier("an axis");
    axis.symbol = symbol(lexer_, *kernel_.context, name, sym::SymbolKind::axis);
    lexer_.expect("<");
    axis.extent = expression();
    if (lexer_.accept("grid")) {
      axis.role = Role::grid;
    } else if (lexer_.accept("unrolled")) {
      axis.role = Role::unrolled;
    } else if (lexer_.accept("vector")) {
      axis.role = Role::vector;
      int64_t lanes = lexer_.expect_integer();
      if (lanes < 1 || lanes > 1024) lexer_.fail("expected 1 to 1024 lanes");
      axis.lanes = static_cast<int>(lanes);
    } else if (lexer_.accept("tile")) {
      axis.role = Role::tile;
      int64_t lanes = lexer_.expect_integer();
      if (lanes < 1 || lanes > kMostTileLanes)
        lexer_.fail(fmt::format("expected 1 to {} lanes", kMostTileLanes));
      axis.lanes = static_cast<int>(lanes);
    }
    return kernel_.axes.push_back(std::move(axis));
  }

  Stmt definition(int column) {
    std::vector<std::string> names{lexer_.expect_value()};
    while (lexer_.accept(",")) names.push_back(lexer_.expect_value());
    lexer_.expect("=");
    if (lexer_.accept("reduce")) return reduce(names, column);
    if (names.size() != 1) lexer_.fail("expected 'reduce' after several names");
    Value parsed = value();
    return Define{define(names[0], std::move(parsed))};
  }

  ValueId define(const std::string& name, Value value) {
    ValueId id = kernel_.values.push_back(std::move(value));
    if (!values_.emplace(name, id).second)
      lexer_.fail(fmt::format("%{} is defined twice, the second time before this", name));
    return id;
  }

  ValueId find_value(const std::string& name) {
    auto found = values_.find(name);
    if (found == values_.end()) lexer_.fail(fmt::format("%{} is not defined before this", name));
    return found->second;
  }

  ValueId use() {
    if (lexer_.peek().kind == base::TokenKind::value) find_value(lexer_.peek().text);
    return find_value(lexer_.expect_value());
  }

  std::vector<ValueId> uses() {
    std::vector<ValueId> values{use()};
    while (lexer_.accept(",")) values.push_back(use());
    return values;
  }

  Stmt reduce(const std::vector<std::string>& names, int column) {
    Reduce reduce;
    for (size_t i = 0; i < names.size(); ++i) {
      if (i) lexer_.expect(",");
      std::optional<ops::ReduceOp> op = ops::reduce_op_from_text(lexer_.peek().text);
      if (!op) lexer_.fail("expected a reduction");
      lexer_.next();
      reduce.parts.push_back({*op, {}, {}});
    }
    lexer_.expect("for");
    do reduce.axes.push_back(axis());
    while (lexer_.accept(","));
    int body_column = lexer_.peek().column;
    reduce.body = block(column);
    if (!lexer_.in_block(column) || lexer_.peek().column != body_column)
      lexer_.fail("expected the yield of the reduce above");
    lexer_.expect("yield");
    for (size_t i = 0; i < names.size(); ++i) {
      if (i) lexer_.expect(",");
      finish_part(reduce.parts[i], names[i]);
    }
    return reduce;
  }

  void finish_part(Reduction& part, const std::string& name) {
    if (lexer_.accept("(")) {
      part.yields = uses();
      lexer_.expect(")");
    } else {
      part.yields = {use()};
    }
    DType dtype = ops::info(part.op).index_result ? DType::i64 : kernel_.values[part.yields[0]].dtype;
    part.result = define(name, {.kind = ValueKind::reduced, .dtype = dtype});
  }

  Value value() {
    if (lexer_.accept("const")) return constant();
    if (lexer_.accept("index")) return {.kind = ValueKind::index, .dtype = DType::i64, .index = expression()};
    if (lexer_.accept("load")) return load();
    std::optional<ops::ScalarOp> op = ops::scalar_op_from_text(lexer_.peek().text);
    if (!op) lexer_.fail("expected an operation");
    lexer_.next();
    Value value{.kind = ValueKind::apply, .op = *op};
    bool typed = ops::info(*op).types == ops::Typing::conversion;
    if (typed) value.dtype = parse_dtype(lexer_);
    value.operands = uses();
    if (!typed) value.dtype = inferred_dtype(value);
    return value;
  }

  // Where the row forbids the operands, any dtype will do: the verifier says what is wrong.
  DType inferred_dtype(const Value& value) const {
    std::vector<DType> operands;
    for (ValueId operand : value.operands) operands.push_back(kernel_.values[operand].dtype);
    return ops::result_dtype(value.op, operands).value_or(operands[0]);
  }

  Value load() {
    Value value{.kind = ValueKind::load};
    value.buffer = buffer_use();
    value.dtype = kernel_.buffers[value.buffer].dtype;
    value.index = index_in_brackets();
    // An `if` on a line of its own is the next statement.
    if (!lexer_.peek().begins_line && lexer_.accept("if")) {
      value.operands.push_back(use());
      lexer_.expect("else");
      value.operands.push_back(use());
    }
    return value;
  }

  Value constant() {
    DType dtype = parse_dtype(lexer_);
    return {.kind = ValueKind::constant, .dtype = dtype, .literal = literal(dtype)};
  }

  Scalar literal(DType dtype) {
    if (dtype == DType::b1) {
      if (!lexer_.is("true") && !lexer_.is("false")) lexer_.fail("expected true or false");
      return Scalar::of_int(dtype, lexer_.next().text == "true");
    }
    if (!is_floating(dtype)) {
      int64_t number = lexer_.expect_integer();
      Scalar scalar = Scalar::of_int(dtype, number);
      if (scalar.i != number) lexer_.fail(fmt::format("{} does not fit {}", number, to_text(dtype)));
      return scalar;
    }
    if (!lexer_.accept("bits")) return Scalar::of(dtype, lexer_.expect_number());
    Scalar scalar;
    scalar.dtype = dtype;
    scalar.f = std::bit_cast<double>(lexer_.expect_integer());
    return scalar;
  }

  base::Lexer& lexer_;
  Kernel kernel_;
  std::unordered_map<std::string, BufferId> buffers_;
  std::unordered_map<std::string, ValueId> values_;
};

}  // namespace

std::vector<Size> parse_sizes(base::Lexer& lexer, sym::Context& context) {
  std::vector<Size> sizes;
  do {
    sym::Expr name = symbol(lexer, context, lexer.expect_identifier("a size"), sym::SymbolKind::size);
    auto known = std::ranges::find(sizes, name, &Size::symbol);
    if (known == sizes.end()) known = sizes.insert(sizes.end(), Size{name, {}, {}});
    parse_clause(lexer, *known);
  } while (lexer.accept(","));
  return sizes;
}

Kernel parse_kernel(base::Lexer& lexer, sym::Context& context) {
  return KernelParser(lexer, context).parse();
}

Kernel parse_kernel(std::string_view text, sym::Context& context) {
  base::Lexer lexer(text);
  Kernel kernel = parse_kernel(lexer, context);
  if (!lexer.at_end()) lexer.fail("expected the end of the kernel");
  return kernel;
}

}  // namespace kerf::loop
