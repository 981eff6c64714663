#include "lower/lower.h"

#include "graph/build.h"
#include "graph/shape.h"
#include "lower/layout.h"
#include "lower/lowering.h"
#include "lower/view.h"

namespace kerf::lower {

namespace {

using graph::Attr;

void lower_input(Lowering& lowering, const graph::Node& node) {
  const graph::TensorType& type = lowering.graph.type(node.results[0]);
  int64_t index = node.get<int64_t>(Attr::index);
  const std::vector<sym::Expr>& strides = graph::strides_of_input(lowering.graph, node);
  sym::Expr elements = storage_extent(lowering.context, type.shape, strides, lowering.facts);
  bool dense = same_strides(type.shape, strides, graph::contiguous_strides(lowering.context, type.shape),
                            lowering.facts);
  target::BufferIndex buffer = add_buffer(lowering,
                                          {.name = fmt::format("arg{}", index),
                                           .dtype = type.dtype,
                                           .elements = elements,
                                           .kind = loop::BufferKind::input,
                                           .input_index = static_cast<int>(index),
                                           .ends = node.find(Attr::ends) != nullptr},
                                          dense ? type.shape : std::vector{elements});
  lowering.input_buffers[node.results[0]] = buffer;
  lowering.places[node.results[0]] = Strided{buffer, strides, lowering.context.constant(0)};
}

void lower_node(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  switch (graph::info(node.op).family) {
    case graph::Family::source: return lower_source(lowering, id);
    case graph::Family::pointwise: return lower_pointwise(lowering, id);
    case graph::Family::reduce: return lower_reduce(lowering, id);
    case graph::Family::scan: return lower_scan(lowering, id);
    case graph::Family::matmul: return lower_matmul(lowering, id);
    case graph::Family::external: return lower_external(lowering, id);
    case graph::Family::effect: return lower_assign(lowering, id);
    case graph::Family::scatter:
      return node.op == graph::Op::index_put ? lower_index_put(lowering, id) : lower_scatter(lowering, id);
    case graph::Family::gather:
      return node.op == graph::Op::index ? lower_index(lowering, id) : lower_gather(lowering, id);
    case graph::Family::assemble:
      if (node.op == graph::Op::window) return lower_window(lowering, id);
      return node.op == graph::Op::cat ? lower_cat(lowering, id) : lower_pad(lowering, id);
    case graph::Family::random:
      return node.op == graph::Op::draw_seed ? lower_draw_seed(lowering, id)
                                             : lower_random_uniform(lowering, id);
    case graph::Family::view:
      lowering.places[node.results[0]] =
          place_of_view(lowering.graph, id, lowering.places[node.operands[0]], lowering.facts);
      return;
    case graph::Family::composite: break;
  }
  UNREACHABLE("{} should have been expanded before lowering", graph::info(node.op).text);
}

}  // namespace

Lowering::Lowering(const graph::Graph& of, const Options& with)
    : graph(of),
      options(with),
      context(*of.context),
      facts(graph::facts_of(of)),
      places(of.values.size()),
      input_buffers(of.values.size(), target::kNoBuffer),
      uses(graph::count_uses(of)),
      copies(of.values.size()) {
  program.context = of.context;
  for (const graph::Size& size : of.sizes) program.sizes.push_back({size.symbol, size.range, size.modulus});
  program.size_sources = of.size_sources;
}

std::string Names::unique(const std::string& name) {
  std::string candidate = name;
  for (int number = 1; !taken_.insert(candidate).second; ++number)
    candidate = fmt::format("{}_{}", name, number);
  return candidate;
}

std::string node_name(const graph::Graph& graph, graph::NodeId id) {
  const graph::Node& node = graph.nodes[id];
  std::string_view text = graph::info(node.op).text;
  if (node.op == graph::Op::apply) text = ops::to_text(node.get<ops::ScalarOp>(Attr::op));
  if (node.op == graph::Op::reduce) text = ops::to_text(node.get<ops::ReduceOp>(Attr::op));
  return fmt::format("{}_{}", text, id.index);
}

target::BufferIndex add_buffer(Lowering& lowering, loop::ProgramBuffer buffer, std::vector<sym::Expr> shape) {
  buffer.name = lowering.buffer_names.unique(buffer.name);
  lowering.program.buffers.push_back(std::move(buffer));
  lowering.buffer_shapes.push_back(std::move(shape));
  return static_cast<target::BufferIndex>(lowering.program.buffers.size() - 1);
}

const Strided& place_in_new_buffer(Lowering& lowering, graph::ValueId value) {
  const graph::TensorType& type = lowering.graph.type(value);
  target::BufferIndex buffer =
      add_buffer(lowering,
                 {.name = node_name(lowering.graph, lowering.graph.values[value].producer),
                  .dtype = type.dtype,
                  .elements = sym::product(lowering.context, type.shape)},
                 type.shape);
  lowering.places[value] = Strided{buffer, chosen_strides(lowering, value), lowering.context.constant(0)};
  return std::get<Strided>(lowering.places[value]);
}

void lower_source(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  switch (node.op) {
    case graph::Op::input: return lower_input(lowering, node);
    case graph::Op::constant:
      lowering.places[node.results[0]] = Uniform{node.get<Scalar>(Attr::value)};
      return;
    case graph::Op::iota:
      lowering.places[node.results[0]] =
          Iota{node.get<sym::Expr>(Attr::start), node.get<sym::Expr>(Attr::step)};
      return;
    default: UNREACHABLE("{} is not a source", graph::info(node.op).text);
  }
}

loop::Program lower(const graph::Graph& graph, const Options& options) {
  Lowering lowering(graph, options);
  for (graph::NodeId id(0); id < graph.nodes.end_id(); ++id.index) lower_node(lowering, id);
  lower_outputs(lowering);
  return std::move(lowering.program);
}

}  // namespace kerf::lower
