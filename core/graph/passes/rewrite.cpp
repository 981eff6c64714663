#include "graph/passes/rewrite.h"

namespace kerf::graph {

Rewrite::Rewrite(const Graph& from) : from_(from), builder_(to_), map_(from.values.size()) {
  to_.context = from.context;
  to_.sizes = from.sizes;
  to_.size_sources = from.size_sources;
  to_.sources = from.sources;
  to_.nodes.reserve(from.nodes.size());
  to_.values.reserve(from.values.size());
}

ValueId Rewrite::at(ValueId old) const {
  ValueId value = map_[old];
  CHECK(value.valid(), "value {} was not rewritten", old.index);
  return value;
}

std::vector<ValueId> Rewrite::at(const std::vector<ValueId>& old) const {
  std::vector<ValueId> values;
  values.reserve(old.size());
  for (ValueId value : old) values.push_back(at(value));
  return values;
}

void Rewrite::copy(const Node& node, std::vector<ValueId> with) {
  Node copied = node;
  copied.operands = std::move(with);
  NodeId id = to_.nodes.end_id();
  for (uint32_t i = 0; i < node.results.size(); ++i) {
    copied.results[i] =
        to_.values.push_back({.type = from_.type(node.results[i]), .producer = id, .result = i});
    map_[node.results[i]] = copied.results[i];
  }
  to_.nodes.push_back(std::move(copied));
}

void Rewrite::replace(const Node& node, const std::vector<ValueId>& with) {
  CHECK(with.size() == node.results.size(), "{}: {} values for {} results", info(node.op).text, with.size(),
        node.results.size());
  for (size_t i = 0; i < with.size(); ++i) {
    const TensorType& old = from_.type(node.results[i]);
    ValueId value = with[i];
    CHECK(to_.type(value).dtype == old.dtype && to_.type(value).rank() == old.rank(),
          "{}: result {} has another type", info(node.op).text, i);
    if (to_.type(value).shape != old.shape || to_.type(value).strides != old.strides)
      value = builder_.node(Op::reshape, {value}, {{Attr::shape, old.shape}}, {old})[0];
    map_[node.results[i]] = value;
  }
}

Graph Rewrite::finish() {
  for (Output output : from_.outputs) {
    if (output.kind == Output::Kind::tensor) output.value = at(output.value);
    to_.outputs.push_back(output);
  }
  return std::move(to_);
}

}  // namespace kerf::graph
