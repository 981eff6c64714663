#include "graph/import_aten.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace kerf::graph {

namespace {

Argument argument_of(const target::ExternArgument& given, const std::vector<ValueId>& operands) {
  if (const auto* view = std::get_if<target::TensorView>(&given.value)) return {operands[view->buffer]};
  if (const auto* list = std::get_if<target::ExternArgumentList>(&given.value)) {
    ArgumentList items;
    for (const target::ExternArgument& item : *list) items.push_back(argument_of(item, operands));
    return {std::move(items)};
  }
  return std::visit(
      [](const auto& value) -> Argument {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, target::TensorView> || std::is_same_v<T, target::ExternArgumentList>)
          UNREACHABLE("handled above");
        else
          return {value};
      },
      given.value);
}

Call call_of(const Graph& graph, const Node& node, const std::vector<ValueId>& operands) {
  Call call{.op = node.get<std::string>(Attr::name)};
  for (const target::ExternArgument& given : node.get<target::ExternArgumentList>(Attr::arguments)) {
    call.arguments.push_back(argument_of(given, operands));
    if (!given.keyword.empty()) call.keyword_only.push_back(given.keyword);
  }
  for (ValueId result : node.results) call.results.push_back(graph.type(result));
  if (node.source.valid()) call.source = graph.sources[node.source];
  return call;
}

}  // namespace

Graph import_externals(const Graph& graph) {
  Rewrite rewrite(graph);
  for (const Node& node : graph.nodes) {
    if (node.op != Op::external) {
      rewrite.copy(node);
      continue;
    }
    std::vector<ValueId> values =
        import_call(rewrite.builder(), call_of(graph, node, rewrite.at(node.operands)));
    for (size_t i = 0; i < values.size(); ++i) rewrite.forward(node.results[i], values[i]);
  }
  return rewrite.finish();
}

}  // namespace kerf::graph
