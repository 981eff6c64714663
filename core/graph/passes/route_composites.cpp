// Composites that the target wants as library calls become external nodes: the call that the importer got, over the
// composite's operands.
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"
#include "graph/strides.h"

namespace kerf::graph {

namespace {

using target::ExternArgument;

ExternArgument tensor(uint32_t operand) { return {target::TensorView{.buffer = operand}, {}}; }

struct LibraryCall {
  std::string name;
  target::ExternArgumentList arguments;
};

LibraryCall softmax_call(const Node& node, sym::Context& context) {
  const ExternArgument dim = {context.constant(node.get<int64_t>(Attr::dim)), {}};
  if (node.op == Op::safe_softmax) return {"aten._safe_softmax.default", {tensor(0), dim}};
  const ExternArgument half_to_float = {node.get<bool>(Attr::half_to_float), {}};
  return {node.op == Op::softmax ? "aten._softmax.default" : "aten._log_softmax.default",
          {tensor(0), dim, half_to_float}};
}

LibraryCall nll_loss_call(const Node& node, size_t rank, sym::Context& context) {
  const bool weighted = node.operands.size() > 2;
  return {rank > 2 ? "aten.nll_loss2d_forward.default" : "aten.nll_loss_forward.default",
          {tensor(0),
           tensor(1),
           weighted ? tensor(2) : ExternArgument{},
           {context.constant(node.get<int64_t>(Attr::reduction)), {}},
           {context.constant(node.get<int64_t>(Attr::ignore_index)), {}}}};
}

class Routing {
 public:
  Routing(const Graph& graph, target::Router& router)
      : graph_(graph), facts_(facts_of(graph)), router_(router), rewrite_(graph) {}

  Graph run() {
    for (const Node& node : graph_.nodes) {
      if (info(node.op).family != Family::composite) {
        rewrite_.copy(node);
        continue;
      }
      target::Decision decision = router_.decide(query(node));
      if (decision.choice == target::Choice::library)
        rewrite_.replace(node, call(node, decision.reason));
      else
        rewrite_.copy(node);
    }
    return rewrite_.finish();
  }

 private:
  target::RouteQuery query(const Node& node) {
    const TensorType& type = graph_.type(node.operands[0]);
    target::RouteQuery result{.op = info(node.op).text, .dtype = type.dtype};
    if (const AttrValue* dim = node.find(Attr::dim)) {
      result.width = type.shape[std::get<int64_t>(*dim)];
      result.widths = sym::range_of(*result.width, facts_);
    }
    const Graph& to = rewrite_.to();
    result.reads_library = to.nodes[to.values[rewrite_.at(node.operands[0])].producer].op == Op::external;
    if (node.source.valid()) result.source = graph_.sources[node.source];
    return result;
  }

  std::vector<ValueId> call(const Node& node, const std::string& reason) {
    rewrite_.builder().set_source(node.source);
    std::vector<ValueId> operands = rewrite_.at(node.operands);
    std::vector<TensorType> results;
    for (ValueId result : node.results) results.push_back(graph_.type(result));
    // The strides of its result are those of torch's pieces only for a contiguous operand.
    if (node.op == Op::safe_softmax) operands[0] = contiguous(operands[0]);
    LibraryCall call = node.op == Op::nll_loss
                           ? nll_loss_call(node, graph_.type(node.operands[0]).rank(), *graph_.context)
                           : softmax_call(node, *graph_.context);
    return rewrite_.builder().external(call.name, std::move(operands), std::move(call.arguments), reason,
                                       std::move(results));
  }

  ValueId contiguous(ValueId value) {
    TensorType type = rewrite_.builder().type(value);
    std::vector<sym::Expr> strides = contiguous_strides(*graph_.context, type.shape);
    if (type.strides == strides) return value;
    type.strides = std::move(strides);
    return rewrite_.builder().node(Op::reshape, {value}, {{Attr::shape, type.shape}}, {type})[0];
  }

  const Graph& graph_;
  sym::Facts facts_;
  target::Router& router_;
  Rewrite rewrite_;
};

}  // namespace

Graph route_composites(const Graph& graph, target::Router& router) { return Routing(graph, router).run(); }

}  // namespace kerf::graph
