// What the graph returns: tensors with eager's strides, as views of the buffers they are in where these have them.
// Two outputs share memory exactly if one is a view of the other in the graph, and an output that is a view of an
// input is given back as one.
#include <algorithm>
#include <map>

#include "lower/layout.h"
#include "lower/tensor_view.h"
#include "lower/view.h"

namespace kerf::lower {

namespace {

// The values that a value is a view of, outermost first, and itself.
std::vector<graph::ValueId> chain_of(const graph::Graph& graph, graph::ValueId value) {
  std::vector<graph::ValueId> chain = {value};
  for (;;) {
    const graph::Node& node = graph.nodes[graph.values[chain.back()].producer];
    if (graph::info(node.op).family != graph::Family::view) break;
    chain.push_back(node.operands[0]);
  }
  std::ranges::reverse(chain);
  return chain;
}

bool has_own_strides(const Lowering& lowering, graph::ValueId value, const Place& place) {
  const graph::TensorType& type = lowering.graph.type(value);
  const auto* strided = std::get_if<Strided>(&place);
  return strided && !strided->flipped &&
         same_strides(type.shape, strided->strides, type.strides, lowering.facts);
}

// Where a value is when a value that it is a view of is at `base`.
Place place_from(const Lowering& lowering, graph::ValueId value, graph::ValueId viewed, const Strided& base) {
  if (value == viewed) return base;
  graph::NodeId view = lowering.graph.values[value].producer;
  Place source = place_from(lowering, lowering.graph.nodes[view].operands[0], viewed, base);
  return place_of_view(lowering.graph, view, source, lowering.facts);
}

// Outputs that are views of one value stay so when it must be copied to eager's strides: they become views of the
// copy. False where `strides` do not give every output eager's.
bool share_copy(Lowering& lowering, graph::ValueId viewed, const std::vector<sym::Expr>& strides,
                const std::vector<graph::ValueId>& outputs) {
  Strided base{target::kNoBuffer, strides, lowering.context.constant(0)};
  for (graph::ValueId v : outputs)
    if (!has_own_strides(lowering, v, place_from(lowering, v, viewed, base))) return false;
  base = materialize(lowering, viewed, strides);
  for (graph::ValueId v : outputs) lowering.places[v] = place_from(lowering, v, viewed, base);
  return true;
}

// The strides that give a permutation of `viewed`, which `value` is a view of, eager's strides; empty if there is none. A
// value that was written to in part is a permutation of what computes it.
std::vector<sym::Expr> strides_under_permutation(const Lowering& lowering, graph::ValueId viewed,
                                                 graph::ValueId value) {
  std::vector<graph::ValueId> chain = chain_of(lowering.graph, value);
  auto next = std::ranges::find(chain, viewed) + 1;
  if (next == chain.end()) return {};
  const graph::Node& node = lowering.graph.nodes[lowering.graph.values[*next].producer];
  if (node.op != graph::Op::permute) return {};
  const auto& dims = node.get<std::vector<int64_t>>(graph::Attr::dims);
  std::vector<sym::Expr> strides(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    strides[static_cast<size_t>(dims[i])] = lowering.graph.type(*next).strides[i];
  return strides;
}

// Outputs of one memory. If no copy of a value that all are views of serves them, each is copied on its own.
void share_memory(Lowering& lowering, const std::vector<graph::ValueId>& outputs) {
  auto fits = [&](graph::ValueId v) { return has_own_strides(lowering, v, lowering.places[v]); };
  if (outputs.size() < 2 || !lowering.graph.type(outputs[0]).opaque.empty()) return;
  if (std::ranges::all_of(outputs, fits)) return;
  std::vector<graph::ValueId> common = chain_of(lowering.graph, outputs[0]);
  for (graph::ValueId v : outputs) {
    auto [end, _] = std::ranges::mismatch(common, chain_of(lowering.graph, v));
    common.erase(end, common.end());
  }
  for (graph::ValueId viewed : common) {
    if (share_copy(lowering, viewed, lowering.graph.type(viewed).strides, outputs)) return;
    for (graph::ValueId v : outputs) {
      std::vector<sym::Expr> strides = strides_under_permutation(lowering, viewed, v);
      if (!strides.empty() && share_copy(lowering, viewed, strides, outputs)) return;
    }
  }
}

void share_memories(Lowering& lowering) {
  std::map<graph::ValueId, std::vector<graph::ValueId>> in_memory;
  for (const graph::Output& output : lowering.graph.outputs) {
    if (output.kind != graph::Output::Kind::tensor || output.any_strides) continue;
    std::vector<graph::ValueId>& others = in_memory[chain_of(lowering.graph, output.value)[0]];
    if (std::ranges::find(others, output.value) == others.end()) others.push_back(output.value);
  }
  for (const auto& [memory, outputs] : in_memory)
    if (!std::holds_alternative<Absent>(lowering.places[memory])) share_memory(lowering, outputs);
}

// The value where it is if that is channels last, else with eager's strides: the two that whoever asked for any strides
// can tell apart.
target::TensorView dense_view(Lowering& lowering, graph::ValueId value) {
  const graph::TensorType& type = lowering.graph.type(value);
  const auto* place = std::get_if<Strided>(&lowering.places[value]);
  bool keeps = place && is_channels_last(lowering, type.shape, place->strides);
  return view_with_strides(lowering, value,
                           keeps ? graph::channels_last_strides(lowering.context, type.shape) : type.strides);
}

target::ProgramOutput tensor_output(Lowering& lowering, const graph::Output& output) {
  graph::ValueId value = output.value;
  target::ProgramOutput result;
  result.kind = target::ProgramOutput::Kind::tensor;
  result.view = output.any_strides ? dense_view(lowering, value)
                                   : view_with_strides(lowering, value, lowering.graph.type(value).strides);
  loop::ProgramBuffer& buffer = lowering.program.buffers[result.view.buffer];
  if (buffer.kind == loop::BufferKind::input) {
    result.alias_input = buffer.input_index;
  } else {
    buffer.kind = loop::BufferKind::output;
  }
  return result;
}

}  // namespace

void lower_outputs(Lowering& lowering) {
  share_memories(lowering);
  for (const graph::Output& output : lowering.graph.outputs) {
    target::ProgramOutput result;
    switch (output.kind) {
      case graph::Output::Kind::none: break;
      case graph::Output::Kind::integer:
        result.kind = target::ProgramOutput::Kind::integer;
        result.integer = output.integer;
        break;
      case graph::Output::Kind::tensor: result = tensor_output(lowering, output); break;
    }
    lowering.program.outputs.push_back(std::move(result));
  }
}

}  // namespace kerf::lower
