#include "graph/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "graph/print.h"
#include "graph/shape.h"
#include "sym/text.h"

namespace kerf::graph {

namespace {

// Nodes in order; what needs valid ids and counts comes after those checks.
class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  std::vector<std::string> run() {
    CHECK(graph_.context, "a graph without context");
    check_ids();
    if (!errors_.empty()) return std::move(errors_);
    check_sizes();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) check(NodeId(i));
    current_ = nullptr;
    check_outputs();
    return std::move(errors_);
  }

 private:
  template <class... Args>
  void error(std::string_view invariant, fmt::format_string<Args...> format, Args&&... args) {
    std::string message = fmt::format("{}: {}", invariant, fmt::format(format, std::forward<Args>(args)...));
    if (current_) message += fmt::format(", in: {}", to_text(graph_, *current_));
    errors_.push_back(std::move(message));
  }

  void check_ids() {
    auto known = [&](ValueId id) { return id.index < graph_.values.size(); };
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[NodeId(i)];
      if (!std::ranges::all_of(node.operands, known)) error("ids", "an operand of node {} is no value", i);
      for (uint32_t r = 0; r < node.results.size(); ++r) {
        ValueId id = node.results[r];
        if (!known(id) || graph_.values[id].producer != NodeId(i) || graph_.values[id].result != r)
          error("ids", "result {} of node {} is not its value", r, i);
      }
      if (node.source.valid() && node.source.index >= graph_.sources.size())
        error("ids", "node {} has an unknown source", i);
    }
    for (const Output& output : graph_.outputs)
      if (output.kind == Output::Kind::tensor && !known(output.value)) error("ids", "an output is no value");
  }

  void check_sizes() {
    for (const Size& size : graph_.sizes) {
      if (!size.symbol.valid() || !size.symbol.is_symbol() ||
          size.symbol.symbol().kind != sym::SymbolKind::size)
        error("sizes", "a size is not a size symbol");
      else if (!sizes_.insert(size.symbol.node()).second)
        error("sizes", "{} is given twice", sym::to_text(size.symbol));
    }
    for (const target::SizeSource& source : graph_.size_sources) check_expression(source.symbol);
  }

  void check_expression(sym::Expr expr) {
    if (!expr.valid() || &expr.context() != graph_.context) {
      error("sizes", "an expression is missing or of another context");
      return;
    }
    std::vector<sym::Expr> symbols;
    sym::collect_symbols(expr, symbols);
    for (sym::Expr symbol : symbols)
      if (!sizes_.contains(symbol.node()))
        error("sizes", "{} is not among the sizes given", sym::to_text(symbol));
  }

  void check_expressions(const std::vector<sym::Expr>& list) {
    for (sym::Expr expr : list) check_expression(expr);
  }

  void check(NodeId id) {
    const Node& node = graph_.nodes[id];
    current_ = &node;
    size_t before = errors_.size();
    for (ValueId operand : node.operands)
      if (graph_.values[operand].producer >= id) error("order", "an operand is defined later");
    const OpInfo& row = info(node.op);
    if (row.operands >= 0 && node.operands.size() != static_cast<size_t>(row.operands))
      error("operands", "{} takes {} operands", row.text, row.operands);
    if (node.op != Op::external && node.results.size() != static_cast<size_t>(row.results))
      error("operands", "{} has {} results", row.text, row.results);
    check_attributes(node);
    for (ValueId result : node.results) {
      check_expressions(graph_.type(result).shape);
      check_expressions(graph_.type(result).strides);
    }
    if (node.op == Op::external && errors_.size() == before) check_external(node);
    if (node.op == Op::input && errors_.size() == before &&
        !inputs_.insert(node.get<int64_t>(Attr::index)).second)
      error("inputs", "a second input {}", node.get<int64_t>(Attr::index));
    check_opaque(node);
    if (errors_.size() == before) check_types(node);
  }

  void check_attributes(const Node& node) {
    std::set<Attr> wanted;
    std::istringstream names{std::string(info(node.op).attributes)};
    for (std::string name; names >> name;) wanted.insert(attr_from_text(name).value());
    for (const auto& [attr, value] : node.attributes) {
      bool is_optional = node.op == Op::input && (attr == Attr::strides || attr == Attr::ends);
      if (!wanted.erase(attr) && !is_optional)
        error("attributes", "{} does not belong here or is there twice", to_text(attr));
      if (!is_of_kind(node.op, attr, value)) error("attributes", "{} is of the wrong kind", to_text(attr));
      if (const auto* expr = std::get_if<sym::Expr>(&value)) check_expression(*expr);
      if (const auto* list = std::get_if<std::vector<sym::Expr>>(&value)) check_expressions(*list);
    }
    for (Attr attr : wanted) error("attributes", "{} is missing", to_text(attr));
    if (!std::ranges::is_sorted(node.attributes, {}, &std::pair<Attr, AttrValue>::first))
      error("attributes", "not sorted");
  }

  static bool is_of_kind(Op op, Attr attr, const AttrValue& value) {
    switch (kind_of(attr)) {
      case AttrKind::boolean: return std::holds_alternative<bool>(value);
      case AttrKind::integer: return std::holds_alternative<int64_t>(value);
      case AttrKind::number: return std::holds_alternative<double>(value);
      case AttrKind::dtype: return std::holds_alternative<DType>(value);
      case AttrKind::scalar: return std::holds_alternative<Scalar>(value);
      case AttrKind::string: return std::holds_alternative<std::string>(value);
      case AttrKind::expression: return std::holds_alternative<sym::Expr>(value);
      case AttrKind::integers: return std::holds_alternative<std::vector<int64_t>>(value);
      case AttrKind::expressions: return std::holds_alternative<std::vector<sym::Expr>>(value);
      case AttrKind::operation:
        return op == Op::apply ? std::holds_alternative<ops::ScalarOp>(value)
                               : std::holds_alternative<ops::ReduceOp>(value);
      case AttrKind::arguments: return std::holds_alternative<target::ExternArgumentList>(value);
    }
    UNREACHABLE("attribute kind");
  }

  void check_opaque(const Node& node) {
    if (node.op == Op::input || node.op == Op::external || node.op == Op::assign) return;
    auto opaque = [&](ValueId id) { return !graph_.type(id).opaque.empty(); };
    if (std::ranges::any_of(node.operands, opaque) || std::ranges::any_of(node.results, opaque))
      error("opaque", "{} computes with a dtype that is not Kerf's", info(node.op).text);
  }

  void check_external(const Node& node) {
    for (Attr attr : {Attr::name, Attr::reason})
      if (const AttrValue* value = node.find(attr); value && std::get<std::string>(*value).empty())
        error("external", "the {} is empty", to_text(attr));
    const AttrValue* arguments = node.find(Attr::arguments);
    if (!arguments) return;
    uint32_t next = 0;
    check_tensors(std::get<target::ExternArgumentList>(*arguments), next);
    if (next != node.operands.size()) error("external", "not every operand is an argument");
  }

  void check_tensors(const target::ExternArgumentList& arguments, uint32_t& next) {
    for (const target::ExternArgument& argument : arguments) {
      if (const auto* view = std::get_if<target::TensorView>(&argument.value); view && view->buffer != next++)
        error("external", "tensor arguments are not the operands in order");
      if (const auto* expr = std::get_if<sym::Expr>(&argument.value)) check_expression(*expr);
      if (const auto* list = std::get_if<target::ExternArgumentList>(&argument.value))
        check_tensors(*list, next);
    }
  }

  void check_types(const Node& node) {
    std::vector<TensorType> given;
    for (ValueId result : node.results) given.push_back(graph_.type(result));
    Result<std::vector<TensorType>> types = infer_types(graph_, node, given);
    if (!types) {
      error("types", "{}", types.reason());
      return;
    }
    for (size_t i = 0; i < given.size(); ++i) {
      const TensorType& implied = (*types)[i];
      if (given[i].strides.size() != given[i].rank())
        error("types", "result {} has not one stride per dimension", i);
      if (implied.dtype != given[i].dtype)
        error("types", "result {} should be {}", i, to_text(implied.dtype));
      else if (implied.rank() != given[i].rank() || differ(implied.shape, given[i].shape))
        error("types", "result {} should be {}", i, to_text(implied, *graph_.context));
    }
    check_repeated(node);
  }

  bool differ(const Shape& a, const Shape& b) const {
    for (size_t i = 0; i < a.size(); ++i)
      if (different_size(graph_, a[i], b[i])) return true;
    return false;
  }

  void check_repeated(const Node& node) {
    if (const AttrValue* dtype = node.find(Attr::dtype);
        dtype && std::get<DType>(*dtype) != graph_.type(node.results[0]).dtype)
      error("types", "the dtype attribute is not the result's");
    if (const AttrValue* shape = node.find(Attr::shape);
        shape && std::get<Shape>(*shape) != graph_.type(node.results[0]).shape)
      error("types", "the shape attribute is not the result's");
  }

  void check_outputs() {
    for (const Output& output : graph_.outputs)
      if (output.kind == Output::Kind::integer) check_expression(output.integer);
  }

  const Graph& graph_;
  const Node* current_ = nullptr;
  std::vector<std::string> errors_;
  std::set<const sym::Node*> sizes_;
  std::set<int64_t> inputs_;
};

}  // namespace

std::vector<std::string> verify(const Graph& graph) { return Verifier(graph).run(); }

void check_valid(const Graph& graph, std::string_view when) {
  std::vector<std::string> errors = verify(graph);
  CHECK(errors.empty(), "{}: {}", when, errors[0]);
}

}  // namespace kerf::graph
