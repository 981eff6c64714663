#include "graph/print.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "graph/build.h"
#include "graph/shape.h"
#include "sym/text.h"

namespace kerf::graph {

namespace {

template <class Items, class Print>
std::string joined(const Items& items, Print print) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += ", ";
    text += print(item);
  }
  return text;
}

template <class Items, class Print>
std::string bracketed(const Items& items, Print print) {
  return fmt::format("[{}]", joined(items, print));
}

std::string quoted(std::string_view raw) {
  std::string text = "\"";
  for (char c : raw) {
    if (c == '"' || c == '\\') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  text += '"';
  return text;
}

// A number that is never mistaken for an integer.
std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string scalar_text(const Scalar& scalar) {
  if (scalar.dtype == DType::b1) return scalar.i ? "true" : "false";
  if (!is_floating(scalar.dtype)) return fmt::format("{}", scalar.i);
  // A float's shortest digits where they are enough: 0.1 and not 0.10000000149011612.
  std::string narrow = fmt::format("{}", static_cast<float>(scalar.f));
  bool exact =
      scalar.dtype != DType::f64 && Scalar::of(scalar.dtype, std::strtod(narrow.c_str(), nullptr)) == scalar;
  if (!exact || !std::isfinite(scalar.f)) return number_text(scalar.f);
  return narrow.find_first_of(".e") == std::string::npos ? narrow + ".0" : narrow;
}

std::string size_text(const Size& size) {
  std::string name = sym::to_text(size.symbol);
  std::vector<std::string> clauses;
  const auto& [lo, hi] = size.range;
  if (lo && hi) {
    clauses.push_back(fmt::format("{} in [{}, {}]", name, *lo, *hi));
  } else if (lo) {
    clauses.push_back(fmt::format("{} >= {}", name, *lo));
  } else if (hi) {
    clauses.push_back(fmt::format("{} <= {}", name, *hi));
  }
  const auto& [modulus, remainder] = size.modulus;
  if (modulus == 0) clauses.push_back(fmt::format("{} = {}", name, remainder));
  if (modulus > 1) clauses.push_back(fmt::format("{} mod {} = {}", name, modulus, remainder));
  return clauses.empty() ? name : joined(clauses, [](const std::string& clause) { return clause; });
}

std::string size_source_text(const target::SizeSource& source) {
  std::string text = fmt::format("  size {} = input {}", sym::to_text(source.symbol), source.input);
  return source.dim < 0 ? text : fmt::format("{} dim {}", text, source.dim);
}

class Printer {
 public:
  // `numbers`: what each value prints as.
  Printer(const Graph& graph, std::vector<size_t> numbers) : graph_(graph), numbers_(std::move(numbers)) {}

  std::string line(const Node& node) const {
    std::string text;
    if (!node.results.empty()) text += names(node.results) + " = ";
    text += heading(node);
    if (node.op == Op::external) {
      text += external(node);
    } else {
      if (!node.operands.empty()) text += " " + names(node.operands);
      for (const auto& [attr, value] : node.attributes)
        if (!implied(node, attr)) text += fmt::format(" {} {}", to_text(attr), attribute(value));
    }
    if (node.op == Op::constant || node.results.empty()) return text;
    return text + ": " +
           joined(node.results, [&](ValueId id) { return to_text(graph_.type(id), *graph_.context); });
  }

  std::string output(const Output& output) const {
    switch (output.kind) {
      case Output::Kind::tensor: return (output.any_strides ? "any " : "") + name(output.value);
      case Output::Kind::integer: return sym::to_text(output.integer);
      case Output::Kind::none: return "none";
    }
    UNREACHABLE("output kind");
  }

 private:
  std::string name(ValueId id) const {
    return fmt::format("%{}", id.index < numbers_.size() ? numbers_[id.index] : id.index);
  }
  std::string names(const std::vector<ValueId>& ids) const {
    return joined(ids, [&](ValueId id) { return name(id); });
  }

  // The operation and what stands before its operands.
  static std::string heading(const Node& node) {
    std::string text(info(node.op).text);
    if (const AttrValue* op = node.find(Attr::op)) {
      if (const auto* scalar = std::get_if<ops::ScalarOp>(op)) return std::string(ops::to_text(*scalar));
      if (const auto* reduce = std::get_if<ops::ReduceOp>(op))
        return fmt::format("{} {}", text, ops::to_text(*reduce));
    }
    if (const AttrValue* index = node.find(Attr::index); index && node.op == Op::input)
      if (const auto* position = std::get_if<int64_t>(index)) return fmt::format("{} {}", text, *position);
    if (const AttrValue* value = node.find(Attr::value); value && node.op == Op::constant)
      if (const auto* scalar = std::get_if<Scalar>(value))
        return fmt::format("{} {}", text, attribute(*scalar));
    return text;
  }

  // Attributes that the heading or the result's type shows.
  static bool implied(const Node& node, Attr attr) {
    return attr == Attr::op || attr == Attr::dtype || attr == Attr::shape ||
           (attr == Attr::index && node.op == Op::input) || (attr == Attr::value && node.op == Op::constant);
  }

  static std::string attribute(const AttrValue& value) {
    return std::visit([](const auto& v) { return text(v); }, value);
  }
  static std::string text(bool v) { return v ? "true" : "false"; }
  static std::string text(int64_t v) { return fmt::format("{}", v); }
  static std::string text(double v) { return number_text(v); }
  static std::string text(DType v) { return std::string(to_text(v)); }
  static std::string text(const Scalar& v) { return fmt::format("{} {}", to_text(v.dtype), scalar_text(v)); }
  static std::string text(const std::string& v) { return quoted(v); }
  static std::string text(sym::Expr v) { return sym::to_text(v); }
  static std::string text(const std::vector<int64_t>& v) {
    return bracketed(v, [](int64_t i) { return fmt::format("{}", i); });
  }
  static std::string text(const std::vector<sym::Expr>& v) { return to_text(v); }
  static std::string text(ops::ScalarOp v) { return std::string(ops::to_text(v)); }
  static std::string text(ops::ReduceOp v) { return std::string(ops::to_text(v)); }
  static std::string text(const target::ExternArgumentList&) { return "(...)"; }  // see external()

  std::string external(const Node& node) const {
    return fmt::format(" {}({}) reason {}", quoted(node.get<std::string>(Attr::name)),
                       joined(node.get<target::ExternArgumentList>(Attr::arguments),
                              [&](const target::ExternArgument& a) { return argument(node, a); }),
                       quoted(node.get<std::string>(Attr::reason)));
  }

  std::string argument(const Node& node, const target::ExternArgument& argument) const {
    std::string prefix = argument.keyword.empty() ? "" : argument.keyword + "=";
    return prefix + std::visit([&](const auto& v) { return argument_text(node, v); }, argument.value);
  }
  std::string argument_text(const Node&, std::monostate) const { return "none"; }
  template <class T>
  std::string argument_text(const Node&, const T& v) const {
    return text(v);
  }
  std::string argument_text(const Node&, const target::TorchConstant& v) const {
    return fmt::format("{}({})", kind_text(v.kind), quoted(v.name));
  }
  std::string argument_text(const Node& node, const target::TensorView& v) const {
    return v.buffer < node.operands.size() ? name(node.operands[v.buffer])
                                           : fmt::format("%operand{}", v.buffer);
  }
  std::string argument_text(const Node& node, const target::ExternArgumentList& v) const {
    return bracketed(v, [&](const target::ExternArgument& a) { return argument(node, a); });
  }

  static std::string_view kind_text(decltype(target::TorchConstant::kind) kind) {
    using Kind = decltype(kind);
    switch (kind) {
      case Kind::dtype: return "dtype";
      case Kind::layout: return "layout";
      case Kind::memory_format: return "memory_format";
      case Kind::device: return "device";
    }
    UNREACHABLE("torch constant");
  }

  const Graph& graph_;
  std::vector<size_t> numbers_;
};

}  // namespace

std::string to_text(const TensorType& type, sym::Context& context) {
  std::string text = type.opaque.empty() ? std::string(to_text(type.dtype)) : type.opaque;
  text += to_text(type.shape);
  if (type.strides != contiguous_strides(context, type.shape)) text += " strides " + to_text(type.strides);
  return text;
}

std::string to_text(const Graph& graph, const Node& node) { return Printer(graph, {}).line(node); }

std::string to_text(const Graph& graph, Sources sources) {
  std::vector<size_t> numbers(graph.values.size());
  size_t count = 0;
  for (const Node& node : graph.nodes)
    for (ValueId result : node.results) numbers[result.index] = count++;
  Printer printer(graph, std::move(numbers));

  std::string text = "graph";
  if (!graph.sizes.empty()) text += " given " + joined(graph.sizes, size_text);
  text += '\n';
  for (const target::SizeSource& source : graph.size_sources) text += size_source_text(source) + '\n';
  for (const Node& node : graph.nodes) {
    text += "  " + printer.line(node);
    if (sources == Sources::shown && node.source.valid()) text += " @ " + quoted(graph.sources[node.source]);
    text += '\n';
  }
  std::string outputs = joined(graph.outputs, [&](const Output& output) { return printer.output(output); });
  return text + (outputs.empty() ? "  return\n" : fmt::format("  return {}\n", outputs));
}

}  // namespace kerf::graph
