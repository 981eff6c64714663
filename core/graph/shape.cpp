#include "graph/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/build.h"
#include "sym/simplify.h"
#include "sym/text.h"

namespace kerf::graph {

bool same_size(const Graph& graph, sym::Expr a, sym::Expr b) {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return false;
  return sym::provably_equal(a, b, facts_of(graph));
}

bool different_size(const Graph& graph, sym::Expr a, sym::Expr b) {
  if (a == b) return false;
  if (a.is_constant() && b.is_constant()) return true;
  sym::Facts facts = facts_of(graph);
  return sym::provably_less(a, b, facts) || sym::provably_less(b, a, facts);
}

bool same_shape(const Graph& graph, std::span<const sym::Expr> a, std::span<const sym::Expr> b) {
  return std::ranges::equal(a, b, [&](sym::Expr x, sym::Expr y) { return same_size(graph, x, y); });
}

std::string to_text(std::span<const sym::Expr> shape) {
  std::string text;
  for (sym::Expr size : shape) text += fmt::format("{}{}", text.empty() ? "" : ", ", sym::to_text(size));
  return fmt::format("[{}]", text);
}

Result<Shape> broadcast(const Graph& graph, std::span<const Shape> shapes) {
  Shape out;
  for (const Shape& shape : shapes) {
    if (shape.size() > out.size())
      out.insert(out.begin(), shape.size() - out.size(), graph.context->constant(1));
    size_t offset = out.size() - shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      sym::Expr& common = out[offset + i];
      if (common.is_constant(1)) {
        common = shape[i];
      } else if (!shape[i].is_constant(1) && different_size(graph, common, shape[i])) {
        return Unsupported{
            fmt::format("sizes {} and {} do not broadcast", sym::to_text(common), sym::to_text(shape[i]))};
      } else if (shape[i].is_constant() && !shape[i].is_constant(1)) {
        common = shape[i];
      }
    }
  }
  return out;
}

Shape indexed_shape(const Shape& data, const std::vector<int64_t>& dims, const Shape& index, int64_t at) {
  Shape out;
  for (size_t i = 0; i < data.size(); ++i)
    if (std::ranges::find(dims, static_cast<int64_t>(i)) == dims.end()) out.push_back(data[i]);
  out.insert(out.begin() + at, index.begin(), index.end());
  return out;
}

int64_t wrap_dim(int64_t dim, size_t rank) {
  int64_t count = std::max<int64_t>(static_cast<int64_t>(rank), 1);
  CHECK(-count <= dim && dim < count, "dimension {} of a tensor of rank {}", dim, rank);
  return dim < 0 ? dim + count : dim;
}

const std::vector<sym::Expr>& strides_of_input(const Graph& graph, const Node& input) {
  const AttrValue* own = input.find(Attr::strides);
  return own ? std::get<std::vector<sym::Expr>>(*own) : graph.type(input.results[0]).strides;
}

IdVector<ValueId, int> count_uses(const Graph& graph) {
  IdVector<ValueId, int> uses(graph.values.size(), 0);
  for (const Node& node : graph.nodes)
    for (ValueId operand : node.operands) ++uses[operand];
  for (const Output& output : graph.outputs)
    if (output.kind == Output::Kind::tensor) ++uses[output.value];
  return uses;
}

}  // namespace kerf::graph
