// The write-back into a graph input, the only effect on memory that anyone else sees.
//
// A graph value is the same whenever it is read, but an input's memory is not: whoever reads the old value after the
// write must find it elsewhere. The old value is copied first if there is such a reader, the assigned value being one
// when it is a view of the input (x.copy_(x.t())).
#include <optional>

#include "graph/build.h"
#include "lower/draft.h"
#include "lower/tensor_view.h"

namespace kerf::lower {

namespace {

// The input whose memory a value stands for as a whole: an input, or what an assign made of one.
std::optional<graph::ValueId> input_of(const graph::Graph& graph, graph::ValueId value) {
  const graph::Node& producer = graph.nodes[graph.values[value].producer];
  if (producer.op == graph::Op::assign) return producer.operands[0];
  if (producer.op == graph::Op::input) return value;
  return std::nullopt;
}

bool is_view(const graph::Node& node) { return graph::info(node.op).family == graph::Family::view; }

// The values that are views of `root`, and itself.
IdVector<graph::ValueId, bool> views_of(const graph::Graph& graph, graph::ValueId root) {
  IdVector<graph::ValueId, bool> views(graph.values.size(), false);
  views[root] = true;
  for (const graph::Node& node : graph.nodes)
    if (is_view(node) && views[node.operands[0]]) views[node.results[0]] = true;
  return views;
}

// Whether the assign itself, a node after it, or an output reads one of these values.
bool is_read_from(const graph::Graph& graph, graph::NodeId assign,
                  const IdVector<graph::ValueId, bool>& values) {
  for (graph::NodeId id = assign; id < graph.nodes.end_id(); ++id.index) {
    const graph::Node& node = graph.nodes[id];
    if (is_view(node)) continue;  // its readers count
    for (size_t i = node.op == graph::Op::assign ? 1 : 0; i < node.operands.size(); ++i)
      if (values[node.operands[i]]) return true;
  }
  for (const graph::Output& output : graph.outputs)
    if (output.kind == graph::Output::Kind::tensor && values[output.value]) return true;
  return false;
}

// Moves the value and its views to a copy.
void move_to_copy(Lowering& lowering, graph::ValueId root, graph::NodeId before,
                  const IdVector<graph::ValueId, bool>& views) {
  const graph::Graph& graph = lowering.graph;
  lowering.places[root] =
      materialize(lowering, root, graph::contiguous_strides(lowering.context, graph.type(root).shape));
  for (graph::NodeId id(0); id < before; ++id.index) {
    const graph::Node& node = graph.nodes[id];
    if (is_view(node) && views[node.operands[0]])
      lowering.places[node.results[0]] =
          place_of_view(graph, id, lowering.places[node.operands[0]], lowering.facts);
  }
}

void store_value(Lowering& lowering, graph::NodeId id, const Strided& target) {
  const graph::Node& node = lowering.graph.nodes[id];
  KernelDraft draft(lowering, id, node_name(lowering.graph, id));
  Position position = draft.open_loops(lowering.graph.type(node.results[0]).shape);
  draft.store(target, position, draft.read_broadcast(node.operands[1], position));
  draft.finish();
}

// A value of a dtype that kernels do not know: the library writes it.
void store_opaque(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  const graph::TensorType& type = lowering.graph.type(node.results[0]);
  target::ExternCall call;
  call.op = "aten.copy_.default";
  for (graph::ValueId operand : {node.results[0], node.operands[1]})
    call.arguments.push_back({any_view(lowering, operand), ""});
  call.results = {{target::kNoBuffer, type.dtype, type.shape, type.strides}};
  call.reason = fmt::format("write-back of a {} tensor", type.opaque);
  if (node.source.valid()) call.source = lowering.graph.sources[node.source];
  lowering.program.steps.emplace_back(std::move(call));
}

}  // namespace

void lower_assign(Lowering& lowering, graph::NodeId id) {
  const graph::Graph& graph = lowering.graph;
  const graph::Node& node = graph.nodes[id];
  graph::ValueId input = node.operands[0];
  const graph::TensorType& type = graph.type(input);
  CHECK(lowering.input_buffers[input] != target::kNoBuffer, "assign to a value that is no input");
  Strided target{lowering.input_buffers[input], type.strides, lowering.context.constant(0)};

  for (graph::ValueId root(0); root < graph.values.end_id(); ++root.index) {
    if (graph.values[root].producer >= id || input_of(graph, root) != input) continue;
    // Moved by an earlier assign already?
    if (std::get<Strided>(lowering.places[root]).buffer != target.buffer) continue;
    IdVector<graph::ValueId, bool> views = views_of(graph, root);
    if (is_read_from(graph, id, views)) move_to_copy(lowering, root, id, views);
  }

  lowering.places[node.results[0]] = target;
  if (type.opaque.empty())
    store_value(lowering, id, target);
  else
    store_opaque(lowering, id);
}

}  // namespace kerf::lower
