#include "graph_builder.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "sym/text.h"

namespace nb = nanobind;

namespace kerf::bindings {
namespace {

// The type of an absent result, such as a gradient that was not asked for. Nobody reads its value.
const graph::TensorType kAbsent;

target::TorchConstant constant_of(const std::string& kind, const std::string& name) {
  using Kind = target::TorchConstant::Kind;
  if (kind == "dtype") return {Kind::dtype, name};
  if (kind == "layout") return {Kind::layout, name};
  if (kind == "memory_format") return {Kind::memory_format, name};
  if (kind == "device") return {Kind::device, name};
  throw UserError(fmt::format("no kind of torch constant is called {}", kind));
}

}  // namespace

GraphBuilder::GraphBuilder() : context_(std::make_shared<sym::Context>()), builder_(graph_) {
  graph_.context = context_.get();
}

void GraphBuilder::add_size(const std::string& name, std::optional<int64_t> low, std::optional<int64_t> high,
                            int input, int dim, std::optional<int64_t> hint) {
  sym::Expr symbol = context_->symbol(name, sym::SymbolKind::size);
  graph_.sizes.push_back({.symbol = symbol, .range = {.lo = low, .hi = high}, .modulus = {}});
  graph_.size_sources.push_back({.symbol = symbol, .input = input, .dim = dim});
  if (hint) hints_.emplace_back(name, *hint);
}

sym::Expr GraphBuilder::size(nb::handle value) {
  if (PyLong_Check(value.ptr())) return context_->constant(nb::cast<int64_t>(value));
  const std::string& text = nb::cast<const Size&>(value).text;
  auto found = parsed_.find(text);
  if (found != parsed_.end()) return found->second;
  base::Lexer lexer(text);
  sym::Expr expr = sym::parse_expr(lexer, *context_, [this](base::Lexer& at, const std::string& name) {
    std::optional<sym::Expr> symbol = context_->find_symbol(name);
    if (!symbol) at.fail("size " + name + " was not declared");
    return *symbol;
  });
  if (!lexer.at_end()) lexer.fail("text after the end of a size");
  parsed_.emplace(text, expr);
  return expr;
}

std::vector<sym::Expr> GraphBuilder::sizes(nb::handle values) {
  std::vector<sym::Expr> result;
  for (nb::handle value : values) result.push_back(size(value));
  return result;
}

graph::TensorType GraphBuilder::type(nb::handle value) {
  if (value.is_none()) return kAbsent;
  auto fields = nb::cast<nb::tuple>(value);
  auto name = nb::cast<std::string>(fields[0]);
  graph::TensorType type{.shape = sizes(fields[1]), .strides = sizes(fields[2])};
  if (std::optional<DType> dtype = dtype_from_torch(name))
    type.dtype = *dtype;
  else
    type.opaque = name;
  return type;
}

std::vector<graph::TensorType> GraphBuilder::types(nb::handle values) {
  std::vector<graph::TensorType> result;
  for (nb::handle value : values) result.push_back(type(value));
  return result;
}

graph::Argument GraphBuilder::argument(nb::handle value) {
  PyObject* object = value.ptr();
  if (value.is_none()) return {std::monostate{}};
  if (PyBool_Check(object)) return {object == Py_True};
  if (PyFloat_Check(object)) return {PyFloat_AS_DOUBLE(object)};
  if (PyUnicode_Check(object)) return {nb::cast<std::string>(value)};
  if (nb::isinstance<graph::ValueId>(value)) return {nb::cast<graph::ValueId>(value)};
  if (nb::isinstance<target::TorchConstant>(value)) return {nb::cast<target::TorchConstant>(value)};
  if (PyTuple_Check(object) || PyList_Check(object)) {
    graph::ArgumentList list;
    for (nb::handle item : value) list.push_back(argument(item));
    return {std::move(list)};
  }
  return {size(value)};
}

graph::ValueId GraphBuilder::input(int position, nb::handle type_of_input, nb::handle strides, bool ends) {
  graph::ValueId value = builder_.input(position, type(type_of_input));
  auto& attributes = graph_.nodes[graph_.values[value].producer].attributes;
  if (!strides.is_none()) attributes.emplace_back(graph::Attr::strides, sizes(strides));
  if (ends) attributes.emplace_back(graph::Attr::ends, true);
  return value;
}

std::vector<graph::ValueId> GraphBuilder::call(const std::string& op, nb::handle arguments,
                                               std::vector<std::string> keyword_only, nb::handle results,
                                               const std::string& source, const std::string& obstacle) {
  graph::Call call{.op = op,
                   .arguments = {},
                   .keyword_only = std::move(keyword_only),
                   .results = types(results),
                   .source = source,
                   .obstacle = obstacle};
  for (nb::handle value : arguments) call.arguments.push_back(argument(value));
  return graph::import_call(builder_, call);
}

std::vector<graph::ValueId> GraphBuilder::call_python(size_t function, nb::handle arguments,
                                                      nb::handle results, const std::string& reason,
                                                      const std::string& source) {
  std::vector<graph::ValueId> operands;
  target::ExternArgumentList list;
  for (nb::handle value : arguments) {
    if (nb::isinstance<graph::ValueId>(value)) {
      list.push_back({target::TensorView{.buffer = static_cast<target::BufferIndex>(operands.size())}, {}});
      operands.push_back(nb::cast<graph::ValueId>(value));
    } else {
      list.push_back({size(value), {}});
    }
  }
  set_source(source);
  return builder_.external(fmt::format("python:{}", function), std::move(operands), std::move(list), reason,
                           types(results));
}

void GraphBuilder::set_source(const std::string& source) {
  builder_.set_source(source.empty() ? graph::SourceId() : builder_.add_source(source));
}

graph::ValueId GraphBuilder::assign(graph::ValueId input, graph::ValueId value, const std::string& source) {
  set_source(source);
  const graph::TensorType target = builder_.type(input);
  if (target.opaque.empty()) {
    value = builder_.cast(value, target.dtype);
    if (builder_.type(value).shape != target.shape) value = builder_.expand(value, target.shape);
  }
  return builder_.assign(input, value);
}

uint32_t GraphBuilder::output(graph::Output output) {
  graph_.outputs.push_back(output);
  return static_cast<uint32_t>(graph_.outputs.size() - 1);
}

uint32_t GraphBuilder::output_tensor(graph::ValueId value, bool any_strides) {
  return output({graph::Output::Kind::tensor, value, {}, any_strides});
}

uint32_t GraphBuilder::output_integer(nb::handle value) {
  return output({.kind = graph::Output::Kind::integer, .value = {}, .integer = size(value)});
}

uint32_t GraphBuilder::output_none() { return output({}); }

void bind_graph_builder(nb::module_& module) {
  nb::class_<graph::ValueId>(module, "Value", "A tensor of the graph being built.")
      .def("__repr__", [](graph::ValueId value) { return fmt::format("%{}", value.index); })
      .def("__hash__", [](graph::ValueId value) { return value.index; })
      .def("__eq__", [](graph::ValueId a, graph::ValueId b) { return a == b; });
  nb::class_<Size>(module, "Size", "An index expression over declared sizes, as text.")
      .def(nb::init<std::string>(), nb::arg("text"))
      .def_ro("text", &Size::text)
      .def("__repr__", [](const Size& size) { return size.text; });
  nb::class_<target::TorchConstant>(module, "Constant", "A torch enum value by kind and name.")
      .def("__init__", [](target::TorchConstant* self, const std::string& kind, const std::string& name) {
        new (self) target::TorchConstant(constant_of(kind, name));
      });
  nb::class_<GraphBuilder>(module, "GraphBuilder", "Builds one graph; see fx_import.py.")
      .def(nb::init<>())
      .def("add_size", &GraphBuilder::add_size, nb::arg("name"), nb::arg("low").none(),
           nb::arg("high").none(), nb::arg("input"), nb::arg("dim"), nb::arg("hint") = nb::none())
      .def("input", &GraphBuilder::input, nb::arg("position"), nb::arg("type"),
           nb::arg("strides").none() = nb::none(), nb::arg("ends") = false)
      .def("call", &GraphBuilder::call, nb::arg("op"), nb::arg("arguments"), nb::arg("keyword_only"),
           nb::arg("results"), nb::arg("source"), nb::arg("obstacle") = "")
      .def("call_python", &GraphBuilder::call_python, nb::arg("function"), nb::arg("arguments"),
           nb::arg("results"), nb::arg("reason"), nb::arg("source"))
      .def("assign", &GraphBuilder::assign, nb::arg("input"), nb::arg("value"), nb::arg("source"))
      .def("output_tensor", &GraphBuilder::output_tensor, nb::arg("value"), nb::arg("any_strides") = false)
      .def("output_integer", &GraphBuilder::output_integer, nb::arg("value"))
      .def("output_none", &GraphBuilder::output_none)
      .def(
          "externs",
          [](const GraphBuilder& builder) {
            nb::list rows;
            for (const graph::Node& node : builder.graph().nodes) {
              if (node.op != graph::Op::external) continue;
              rows.append(nb::make_tuple(node.get<std::string>(graph::Attr::name).c_str(),
                                         node.get<std::string>(graph::Attr::reason).c_str()));
            }
            return rows;
          },
          "The (operator, reason) of every node that is not compiled.")
      .def("text", &GraphBuilder::text, "The graph as text, which kerf_opt reads.")
      .def("node_count", [](const GraphBuilder& builder) { return builder.graph().nodes.size(); });
  module.def(
      "is_computed_dtype", [](const std::string& name) { return dtype_from_torch(name).has_value(); },
      nb::arg("torch_name"), "Whether Kerf computes with a torch dtype; others only pass through externs.");
  module.def("imported_overloads", &graph::imported_overloads,
             "The ATen overloads that the graph importer knows.");
}

}  // namespace kerf::bindings
