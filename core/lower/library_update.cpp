// Indexed writes by the library, in place. `index_put_` counts negative indices from the end as torch's indexing does; updates whose
// indices may not be negative are those along one dimension.
#include "graph/build.h"
#include "lower/tensor_view.h"

namespace kerf::lower {

namespace {

using graph::Attr;
using target::ExternArgument;
using target::ExternArgumentList;

constexpr const char* kReason = "writes at addresses from memory: library call, in place";

target::TensorView row_major(Lowering& lowering, graph::ValueId value) {
  const graph::TensorType& type = lowering.graph.type(value);
  return view_with_strides(lowering, value, graph::contiguous_strides(lowering.context, type.shape));
}

// Row-major dimensions [begin, begin + count) as one.
target::TensorView flattened(Lowering& lowering, target::TensorView view, size_t begin, size_t count) {
  auto first = view.shape.begin() + static_cast<std::ptrdiff_t>(begin);
  auto last = first + static_cast<std::ptrdiff_t>(count);
  sym::Expr extent = sym::product(lowering.context, std::vector<sym::Expr>(first, last));
  view.shape.insert(view.shape.erase(first, last), extent);
  view.strides = graph::contiguous_strides(lowering.context, view.shape);
  return view;
}

ExternArgument number(const Lowering& lowering, int64_t value) {
  return {lowering.context.constant(value), ""};
}

void set_put(Lowering& lowering, const graph::Node& node, target::ExternCall& call) {
  const auto& dims = node.get<std::vector<int64_t>>(Attr::dims);
  ExternArgumentList indices(static_cast<size_t>(dims.back()) + 1);
  for (size_t k = 0; k < dims.size(); ++k)
    indices[static_cast<size_t>(dims[k])].value = any_view(lowering, node.operands[2 + k]);
  call.op = "aten.index_put_.default";
  call.arguments.push_back({std::move(indices), ""});
  call.arguments.push_back({any_view(lowering, node.operands[1]), ""});
  call.arguments.push_back({node.get<bool>(Attr::accumulate), ""});
}

void set_put_along(Lowering& lowering, const graph::Node& node, target::ExternCall& call) {
  auto at = node.get<int64_t>(Attr::dim);
  CHECK(node.get<std::vector<int64_t>>(Attr::dims) == std::vector<int64_t>{at},
        "indices of several dimensions");
  size_t rank = lowering.graph.type(node.operands[2]).rank();
  call.op = node.get<bool>(Attr::accumulate) ? "aten.index_add_.default" : "aten.index_copy_.default";
  call.arguments.push_back(number(lowering, at));
  call.arguments.push_back({flattened(lowering, row_major(lowering, node.operands[2]), 0, rank), ""});
  call.arguments.push_back(
      {flattened(lowering, row_major(lowering, node.operands[1]), static_cast<size_t>(at), rank), ""});
}

void set_scatter(Lowering& lowering, const graph::Node& node, target::ExternCall& call) {
  const auto& mode = node.get<std::string>(Attr::mode);
  call.op = mode == "assign" ? "aten.scatter_.src"
            : mode == "add"  ? "aten.scatter_add_.default"
                             : "aten.scatter_reduce_.two";
  call.arguments.push_back(number(lowering, node.get<int64_t>(Attr::dim)));
  for (size_t operand : {1, 2}) call.arguments.push_back({any_view(lowering, node.operands[operand]), ""});
  if (mode == "assign" || mode == "add") return;
  call.arguments.push_back({mode == "multiply" ? std::string("prod") : mode, ""});
  call.arguments.push_back({true, "include_self"});
}

}  // namespace

void update_in_library(Lowering& lowering, graph::NodeId id) {
  const graph::Node& node = lowering.graph.nodes[id];
  const graph::TensorType& type = lowering.graph.type(node.results[0]);
  const Strided place = std::get<Strided>(lowering.places[node.results[0]]);
  target::ExternCall call{.reason = kReason};
  call.arguments.push_back(
      {target::TensorView{place.buffer, type.dtype, type.shape, place.strides, place.offset}, ""});
  if (node.op == graph::Op::scatter)
    set_scatter(lowering, node, call);
  else if (node.get<bool>(Attr::wrap))
    set_put(lowering, node, call);
  else
    set_put_along(lowering, node, call);
  call.results = {{place.buffer, type.dtype, type.shape, place.strides}};
  if (node.source.valid()) call.source = lowering.graph.sources[node.source];
  lowering.program.steps.emplace_back(std::move(call));
}

}  // namespace kerf::lower
