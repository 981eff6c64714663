#include "graph/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/lexer.h"
#include "graph/build.h"
#include "graph/shape.h"
#include "sym/text.h"

namespace kerf::graph {

namespace {

using base::TokenKind;
using target::ExternArgument;
using target::ExternArgumentList;
using target::TorchConstant;

class Parser {
 public:
  Parser(std::string_view text, sym::Context& context) : lexer_(text) { graph_.context = &context; }

  Graph run() {
    lexer_.expect("graph");
    if (lexer_.accept("given")) sizes();
    while (lexer_.is("size")) size_source();
    while (!lexer_.is("return")) node();
    lexer_.expect("return");
    if (!lexer_.at_end()) outputs();
    if (!lexer_.at_end()) lexer_.fail("expected the end of the graph");
    return std::move(graph_);
  }

 private:
  // --- sizes

  void sizes() {
    do {
      std::string name = lexer_.expect_identifier("a size");
      std::optional<sym::Expr> known = graph_.context->find_symbol(name);
      if (known && known->symbol().kind != sym::SymbolKind::size)
        lexer_.fail(fmt::format("'{}' is already the name of something else", name));
      sym::Expr symbol = graph_.context->symbol(name, sym::SymbolKind::size);
      auto size = std::ranges::find(graph_.sizes, symbol, &Size::symbol);
      if (size == graph_.sizes.end()) size = graph_.sizes.insert(size, Size{symbol, {}, {}});
      clause(*size);
    } while (lexer_.accept(","));
  }

  void clause(Size& size) {
    if (lexer_.accept("in")) {
      lexer_.expect("[");
      size.range.lo = lexer_.expect_integer();
      lexer_.expect(",");
      size.range.hi = lexer_.expect_integer();
      lexer_.expect("]");
    } else if (lexer_.accept(">=")) {
      size.range.lo = lexer_.expect_integer();
    } else if (lexer_.accept("<=")) {
      size.range.hi = lexer_.expect_integer();
    } else if (lexer_.accept("=")) {
      size.modulus = {0, lexer_.expect_integer()};
    } else if (lexer_.accept("mod")) {
      size.modulus.modulus = lexer_.expect_integer();
      if (size.modulus.modulus < 1) lexer_.fail("expected a modulus of 1 or more");
      lexer_.expect("=");
      size.modulus.remainder = lexer_.expect_integer();
    }
  }

  void size_source() {
    lexer_.expect("size");
    target::SizeSource source{.symbol = expression(), .input = 0, .dim = -1};
    lexer_.expect("=");
    lexer_.expect("input");
    source.input = static_cast<int>(lexer_.expect_integer());
    if (lexer_.accept("dim")) source.dim = static_cast<int>(lexer_.expect_integer());
    graph_.size_sources.push_back(source);
  }

  sym::Expr expression() {
    return sym::parse_expr(lexer_, *graph_.context, [this](base::Lexer& lexer, const std::string& name) {
      std::optional<sym::Expr> symbol = graph_.context->find_symbol(name);
      if (!symbol || std::ranges::find(graph_.sizes, *symbol, &Size::symbol) == graph_.sizes.end())
        lexer.fail(fmt::format("'{}' is not among the sizes given", name));
      return *symbol;
    });
  }

  // --- pieces

  template <class Item>
  auto list(Item item) {
    std::vector<decltype(item())> items;
    lexer_.expect("[");
    if (lexer_.accept("]")) return items;
    do items.push_back(item());
    while (lexer_.accept(","));
    lexer_.expect("]");
    return items;
  }

  std::vector<sym::Expr> expressions() {
    return list([this] { return expression(); });
  }

  std::string string() {
    if (lexer_.peek().kind != TokenKind::string) lexer_.fail("expected a string");
    return lexer_.next().text;
  }

  DType dtype() {
    if (std::optional<DType> dtype = dtype_from_text(lexer_.peek().text)) {
      lexer_.next();
      return *dtype;
    }
    lexer_.fail("expected a dtype");
  }

  bool boolean() {
    if (!lexer_.is("true") && !lexer_.is("false")) lexer_.fail("expected true or false");
    return lexer_.next().text == "true";
  }

  Scalar scalar() {
    DType type = dtype();
    if (type == DType::b1) return Scalar::of_int(type, boolean());
    if (is_floating(type)) return Scalar::of(type, lexer_.expect_number());
    int64_t number = lexer_.expect_integer();
    Scalar scalar = Scalar::of_int(type, number);
    if (scalar.i != number) lexer_.fail(fmt::format("{} does not fit {}", number, to_text(type)));
    return scalar;
  }

  TensorType tensor_type() {
    TensorType type;
    std::string name = lexer_.expect_identifier("a type");
    if (std::optional<DType> dtype = dtype_from_text(name)) {
      type.dtype = *dtype;
    } else {
      type.opaque = name;
    }
    type.shape = expressions();
    type.strides = lexer_.accept("strides") ? expressions() : contiguous_strides(*graph_.context, type.shape);
    return type;
  }

  ValueId use() {
    if (lexer_.peek().kind != TokenKind::value) lexer_.fail("expected a value such as %0");
    auto found = values_.find(lexer_.peek().text);
    if (found == values_.end()) lexer_.fail("no such value is defined before this");
    lexer_.next();
    return found->second;
  }

  // --- nodes

  void node() {
    int line = lexer_.peek().line;
    std::vector<std::string> names;
    if (lexer_.peek().kind == TokenKind::value) {
      do names.push_back(lexer_.expect_value());
      while (lexer_.accept(","));
      lexer_.expect("=");
    }
    Node node = heading();
    if (node.op == Op::external) {
      external(node);
    } else {
      if (lexer_.peek().line == line && lexer_.peek().kind == TokenKind::value) {
        do node.operands.push_back(use());
        while (lexer_.accept(","));
      }
      while (lexer_.peek().line == line && lexer_.peek().kind == TokenKind::identifier) attribute(node);
    }
    std::vector<TensorType> types = result_types(node, names.size());
    if (lexer_.accept("@")) node.source = source(string());
    if (lexer_.peek().line == line && !lexer_.at_end()) lexer_.fail("expected the end of the line");
    define(std::move(node), names, std::move(types));
  }

  Node heading() {
    std::string text = lexer_.expect_identifier("an operation");
    std::optional<Op> op = op_from_text(text);
    if (op == Op::apply) op.reset();
    std::optional<ops::ScalarOp> scalar_op = ops::scalar_op_from_text(text);
    if (!op && !scalar_op) lexer_.fail(fmt::format("'{}' is not an operation", text));
    Node node{.op = op.value_or(Op::apply), .operands = {}, .results = {}, .attributes = {}, .source = {}};
    if (!op) node.attributes.emplace_back(Attr::op, *scalar_op);
    if (op == Op::input) node.attributes.emplace_back(Attr::index, lexer_.expect_integer());
    if (op == Op::constant) node.attributes.emplace_back(Attr::value, scalar());
    if (op == Op::reduce || op == Op::scan) {
      std::optional<ops::ReduceOp> reduce = ops::reduce_op_from_text(lexer_.peek().text);
      if (!reduce) lexer_.fail("expected a reduction");
      lexer_.next();
      node.attributes.emplace_back(Attr::op, *reduce);
    }
    return node;
  }

  void attribute(Node& node) {
    std::optional<Attr> attr = attr_from_text(lexer_.peek().text);
    if (!attr) lexer_.fail("expected an attribute");
    lexer_.next();
    node.attributes.emplace_back(*attr, attribute_value(kind_of(*attr)));
  }

  AttrValue attribute_value(AttrKind kind) {
    switch (kind) {
      case AttrKind::boolean: return boolean();
      case AttrKind::integer: return lexer_.expect_integer();
      case AttrKind::number: return lexer_.expect_number();
      case AttrKind::dtype: return dtype();
      case AttrKind::scalar: return scalar();
      case AttrKind::string: return string();
      case AttrKind::expression: return expression();
      case AttrKind::integers: return list([this] { return lexer_.expect_integer(); });
      case AttrKind::expressions: return expressions();
      case AttrKind::operation:
      case AttrKind::arguments: lexer_.fail("this attribute is not written like that");
    }
    UNREACHABLE("attribute kind");
  }

  std::vector<TensorType> result_types(Node& node, size_t count) {
    std::vector<TensorType> types;
    if (node.op == Op::constant) {
      types.push_back({.dtype = node.get<Scalar>(Attr::value).dtype, .shape = {}, .strides = {}});
    } else if (lexer_.accept(":")) {
      do types.push_back(tensor_type());
      while (lexer_.accept(","));
    }
    if (types.size() != count) lexer_.fail(fmt::format("expected {} types before this", count));
    std::string_view wanted = info(node.op).attributes;
    auto has = [&](std::string_view name) {
      return fmt::format(" {} ", wanted).find(fmt::format(" {} ", name)) != std::string::npos;
    };
    if (!types.empty() && has("dtype")) node.attributes.emplace_back(Attr::dtype, types[0].dtype);
    if (!types.empty() && has("shape")) node.attributes.emplace_back(Attr::shape, types[0].shape);
    return types;
  }

  SourceId source(const std::string& text) {
    for (size_t i = 0; i < graph_.sources.size(); ++i)
      if (graph_.sources[SourceId(i)] == text) return SourceId(i);
    return graph_.sources.push_back(text);
  }

  void define(Node node, const std::vector<std::string>& names, std::vector<TensorType> types) {
    std::ranges::stable_sort(node.attributes, {}, &std::pair<Attr, AttrValue>::first);
    NodeId id = graph_.nodes.end_id();
    for (uint32_t i = 0; i < names.size(); ++i) {
      ValueId value = graph_.values.push_back({.type = std::move(types[i]), .producer = id, .result = i});
      if (!values_.emplace(names[i], value).second)
        lexer_.fail(fmt::format("%{} is defined twice, the second time before this", names[i]));
      node.results.push_back(value);
    }
    graph_.nodes.push_back(std::move(node));
  }

  // --- externals

  void external(Node& node) {
    node.attributes.emplace_back(Attr::name, string());
    ExternArgumentList arguments;
    lexer_.expect("(");
    if (!lexer_.accept(")")) {
      do arguments.push_back(argument(node));
      while (lexer_.accept(","));
      lexer_.expect(")");
    }
    node.attributes.emplace_back(Attr::arguments, std::move(arguments));
    lexer_.expect("reason");
    node.attributes.emplace_back(Attr::reason, string());
  }

  ExternArgument argument(Node& node) {
    ExternArgument argument;
    if (lexer_.peek().kind == TokenKind::identifier && lexer_.is("=", 1)) {
      argument.keyword = lexer_.next().text;
      lexer_.expect("=");
    }
    if (lexer_.accept("none")) return argument;
    if (lexer_.is("true") || lexer_.is("false")) {
      argument.value = boolean();
    } else if (lexer_.peek().kind == TokenKind::string) {
      argument.value = string();
    } else if (lexer_.peek().kind == TokenKind::value) {
      node.operands.push_back(use());
      argument.value = target::TensorView{.buffer = static_cast<uint32_t>(node.operands.size() - 1),
                                          .dtype = {},
                                          .shape = {},
                                          .strides = {},
                                          .offset = {}};
    } else if (lexer_.is("[")) {
      argument.value = list([&] { return this->argument(node); });
    } else if (std::optional<TorchConstant> constant = torch_constant()) {
      argument.value = *constant;
    } else if (is_number()) {
      argument.value = lexer_.expect_number();
    } else {
      argument.value = expression();
    }
    return argument;
  }

  bool is_number() const {
    int at = lexer_.is("-") ? 1 : 0;
    return lexer_.peek(at).kind == TokenKind::floating || lexer_.is("inf", at) || lexer_.is("nan", at);
  }

  std::optional<TorchConstant> torch_constant() {
    using Kind = decltype(TorchConstant::kind);
    if (!lexer_.is("(", 1)) return std::nullopt;
    for (auto [text, kind] : {std::pair{"dtype", Kind::dtype},
                              {"layout", Kind::layout},
                              {"memory_format", Kind::memory_format},
                              {"device", Kind::device}}) {
      if (!lexer_.accept(text)) continue;
      lexer_.expect("(");
      TorchConstant constant{kind, string()};
      lexer_.expect(")");
      return constant;
    }
    return std::nullopt;
  }

  void outputs() {
    do {
      Output output;
      output.any_strides = lexer_.accept("any");
      if (lexer_.peek().kind == TokenKind::value) {
        output.kind = Output::Kind::tensor;
        output.value = use();
      } else if (!lexer_.accept("none")) {
        output.kind = Output::Kind::integer;
        output.integer = expression();
      }
      graph_.outputs.push_back(output);
    } while (lexer_.accept(","));
  }

  base::Lexer lexer_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> values_;
};

}  // namespace

Graph parse(std::string_view text, sym::Context& context) { return Parser(text, context).run(); }

}  // namespace kerf::graph
