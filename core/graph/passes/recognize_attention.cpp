// Attention that a model writes out becomes one library call, which never has the matrix of scores in memory:
//
//   softmax(q k^T * scale + mask) v   ->   _scaled_dot_product_flash_attention_for_cpu(q, k, v, mask, scale)
//
// Matched from the second product backwards, by structure: reshapes of the batch, casts between floats, the scale as a
// factor or divisor, any number of added masks. Nobody else may read what lies between, so a forward pass that keeps
// the probabilities is left alone: training keeps its pieces.
//
// Rows that lose to infinities are the one difference: where every score of a row is -inf, softmax gives NaN, the
// library a row of zeros and a log of sums that is zero; where one is +inf, half precision gives zeros too. Such rows
// are made NaN again: the log of sums is not finite, or the mask hides the whole row, or that log is zero and the
// scores may have left the range of f32.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"
#include "graph/shape.h"
#include "graph/term.h"

namespace kerf::graph {

namespace {

using Dims = std::vector<int64_t>;
using ops::ScalarOp;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Below this, largest query times largest key, no sum of products leaves f32, nor with the lowest finite mask added.
constexpr double kSafeProduct = 1e25;

struct Attention {
  ValueId query, key, value;   // [N, queries, D], [N, D, keys], [N, keys, D]
  Shape scores;                // [batch, heads, queries, keys]
  std::vector<ValueId> masks;  // outermost first
  double scale = 1;
};

// What a second product must look like, read from the end.
class Matcher {
 public:
  explicit Matcher(const Graph& graph) : graph_(graph), uses_(count_uses(graph)) {}

  std::optional<Attention> match(const Node& product) {
    if (product.op != Op::bmm) return std::nullopt;
    found_ = {};
    found_.value = product.operands[1];
    std::optional<ValueId> probabilities = unwrapped(product.operands[0]);
    if (!probabilities) return std::nullopt;
    const Node& softmax = producer(*probabilities);
    ValueId scores = softmax.operands.empty() ? ValueId() : softmax.operands[0];
    if (softmax.op != Op::softmax || !set_shape(scores, product) ||
        softmax.get<int64_t>(Attr::dim) + 1 != static_cast<int64_t>(graph_.type(scores).rank()))
      return std::nullopt;
    if (!match_scores(scores, graph_.type(scores).shape, false) || !is_supported(product))
      return std::nullopt;
    return found_;
  }

 private:
  const Node& producer(ValueId value) const { return graph_.nodes[graph_.values[value].producer]; }

  // Through reshapes and casts between floats to what they were made of; absent where somebody else reads one.
  std::optional<ValueId> unwrapped(ValueId value) const {
    for (;;) {
      if (uses_[value] != 1) return std::nullopt;
      const Node& node = producer(value);
      bool cast = node.op == Op::cast && is_floating(graph_.type(node.operands[0]).dtype);
      if (node.op != Op::reshape && !cast) return value;
      value = node.operands[0];
    }
  }

  // [N, queries, keys] is one batch of N heads. Reshapes keep the order, so only the sizes at both ends matter.
  bool set_shape(ValueId scores, const Node& product) {
    const Shape& shape = graph_.type(scores).shape;
    const Shape& joined = graph_.type(product.operands[0]).shape;
    if (shape.size() != 3 && shape.size() != 4) return false;
    found_.scores = shape;
    if (shape.size() == 3) found_.scores.insert(found_.scores.begin(), graph_.context->constant(1));
    return found_.scores[2] == joined[1] && found_.scores[3] == joined[2];
  }

  // From the operand of the softmax to the first product. Under a factor there is no mask: it would be scaled too.
  bool match_scores(ValueId value, const Shape& shape, bool scaled) {
    if (uses_[value] != 1) return false;
    const Node& node = producer(value);
    if (node.op == Op::cast && is_floating(graph_.type(node.operands[0]).dtype))
      return match_scores(node.operands[0], shape, scaled);
    if (node.op == Op::reshape || node.op == Op::bmm) return match_product(value);
    if (node.op != Op::apply || graph_.type(value).shape != shape) return false;
    ScalarOp op = node.get<ScalarOp>(Attr::op);
    if (op == ScalarOp::add && !scaled) return match_masked(node, 0, shape) || match_masked(node, 1, shape);
    if (op == ScalarOp::mul) return match_scaled(node, 0, shape) || match_scaled(node, 1, shape);
    return op == ScalarOp::div && match_scaled(node, 0, shape);
  }

  bool match_masked(const Node& node, size_t scores, const Shape& shape) {
    ValueId mask = node.operands[1 - scores];
    bool zeros = is_zeros(mask);
    if (graph_.type(node.operands[scores]).shape != shape || !(zeros || fits(graph_.type(mask).shape)))
      return false;
    Attention before = found_;
    if (!zeros) found_.masks.push_back(mask);
    if (match_scores(node.operands[scores], shape, false)) return true;
    found_ = std::move(before);
    return false;
  }

  bool match_scaled(const Node& node, size_t scores, const Shape& shape) {
    const Node& factor = producer(node.operands[1 - scores]);
    if (factor.op != Op::constant) return false;
    double number = factor.get<Scalar>(Attr::value).f;
    double scale = node.get<ScalarOp>(Attr::op) == ScalarOp::div ? 1 / number : number;
    if (!std::isnormal(scale)) return false;
    found_.scale *= scale;
    return match_scores(node.operands[scores], shape, true);
  }

  bool match_product(ValueId value) {
    std::optional<ValueId> joined = unwrapped(value);
    if (!joined || producer(*joined).op != Op::bmm) return false;
    const Shape& shape = graph_.type(*joined).shape;
    if (shape[1] != found_.scores[2] || shape[2] != found_.scores[3]) return false;
    found_.query = producer(*joined).operands[0];
    found_.key = producer(*joined).operands[1];
    return true;
  }

  // A mask may be broadcast along all but the keys.
  bool fits(const Shape& mask) const {
    if (mask.empty() || mask.size() > 4 || mask.back() != found_.scores[3]) return false;
    for (size_t i = 2; i <= mask.size(); ++i) {
      sym::Expr size = mask[mask.size() - i];
      if (size != found_.scores[4 - i] && !size.is_constant(1)) return false;
    }
    return true;
  }

  bool is_zeros(ValueId value) const {
    const Node& node = producer(value);
    if (node.op == Op::expand || node.op == Op::reshape) return is_zeros(node.operands[0]);
    return node.op == Op::constant && node.get<Scalar>(Attr::value).f == 0;
  }

  bool is_supported(const Node& product) const {
    DType dtype = graph_.type(product.results[0]).dtype;
    for (ValueId operand : {found_.query, found_.key, found_.value})
      if (graph_.type(operand).dtype != dtype) return false;
    for (ValueId mask : found_.masks)
      if (compute_dtype(graph_.type(mask).dtype) != DType::f32) return false;
    const Shape& query = graph_.type(found_.query).shape;
    if (may_be_empty(found_.scores) || may_be_empty(query)) return false;
    return query[2] == graph_.type(found_.value).shape[2];
  }

  // The library divides by the numbers of heads and rows.
  bool may_be_empty(const Shape& shape) const {
    sym::Facts facts = facts_of(graph_);
    return std::ranges::any_of(shape,
                               [&](sym::Expr size) { return sym::range_of(size, facts).lo.value_or(0) < 1; });
  }

  const Graph& graph_;
  IdVector<ValueId, int> uses_;
  Attention found_;
};

// One match, built in the new graph.
class Call {
 public:
  Call(Rewrite& rewrite, const Attention& attention) : rewrite_(rewrite), attention_(attention) {}

  // The rows of all heads, [batch, heads, queries, D].
  Term build() {
    ValueId query = in_rows(with_heads(attention_.query)), value = in_rows(with_heads(attention_.value));
    ValueId key = in_rows(transposed(with_heads(attention_.key)));
    std::optional<ValueId> mask = added_masks();
    std::vector<ValueId> results = call(query, key, value, mask);
    return with_lost_rows(term(results[0]), term(results[1]), term(query), term(key), mask);
  }

 private:
  Builder& builder() { return rewrite_.builder(); }
  Term term(ValueId value) { return {builder(), value}; }
  const Node& producer(ValueId value) const {
    return rewrite_.from().nodes[rewrite_.from().values[value].producer];
  }

  // [N, a, b] as [batch, heads, a, b]: what it was reshaped from, if it had that shape.
  ValueId with_heads(ValueId joined) {
    const Shape& shape = rewrite_.from().type(joined).shape;
    Shape wanted = {attention_.scores[0], attention_.scores[1], shape[1], shape[2]};
    for (ValueId value = joined;;) {
      const TensorType& type = rewrite_.from().type(value);
      if (type.shape == wanted) return rewrite_.at(value);
      const Node& node = producer(value);
      bool copy = node.op == Op::cast && rewrite_.from().type(node.operands[0]).dtype == type.dtype;
      if (node.op != Op::reshape && !copy) return builder().reshape(rewrite_.at(joined), wanted);
      value = node.operands[0];
    }
  }

  // With the strides of a view.
  ValueId transposed(ValueId value) {
    TensorType type = builder().type(value);
    std::swap(type.shape[2], type.shape[3]);
    std::swap(type.strides[2], type.strides[3]);
    return builder().node(Op::permute, {value}, {{Attr::dims, Dims{0, 1, 3, 2}}}, {type})[0];
  }

  // The library reads rows without looking at their stride, and gives its result the query's strides. Heads innermost
  // but for the row is what projections leave; anything else that is not contiguous is copied to that.
  ValueId in_rows(ValueId value) {
    TensorType type = builder().type(value);
    if (type.strides == contiguous_strides(builder().context(), type.shape)) return value;
    Shape inner = {type.shape[0], type.shape[2], type.shape[1], type.shape[3]};
    Shape strides = contiguous_strides(builder().context(), inner);
    std::swap(strides[1], strides[2]);
    if (type.strides == strides) return value;
    type.strides = strides;
    return builder().node(Op::reshape, {value}, {{Attr::shape, type.shape}}, {type})[0];
  }

  // In f32 if they are several or not of the query's dtype; of rank 4, contiguous.
  std::optional<ValueId> added_masks() {
    if (attention_.masks.empty()) return std::nullopt;
    DType dtype = rewrite_.from().type(attention_.query).dtype;
    std::optional<Term> sum;
    for (auto mask = attention_.masks.rbegin(); mask != attention_.masks.rend(); ++mask) {
      Term next = term(rewrite_.at(*mask));
      if (attention_.masks.size() > 1 || next.dtype() != dtype) next = next.in(DType::f32);
      sum = sum ? *sum + next : next;
    }
    TensorType type = sum->type();
    while (type.shape.size() < 4) type.shape.insert(type.shape.begin(), builder().context().constant(1));
    type.strides = contiguous_strides(builder().context(), type.shape);
    return builder().node(Op::reshape, {*sum}, {{Attr::shape, type.shape}}, {type})[0];
  }

  std::vector<ValueId> call(ValueId query, ValueId key, ValueId value, std::optional<ValueId> mask) {
    auto tensor = [](uint32_t operand) {
      return target::ExternArgument{target::TensorView{.buffer = operand}, {}};
    };
    target::ExternArgumentList arguments = {tensor(0), tensor(1), tensor(2), {0.0, {}}, {false, {}}};
    std::vector<ValueId> operands = {query, key, value};
    arguments.push_back({std::monostate(), "attn_mask"});
    if (mask) {
      arguments.back().value = target::TensorView{.buffer = 3};
      operands.push_back(*mask);
    }
    arguments.push_back({attention_.scale, "scale"});
    TensorType sums = builder().type(query);
    sums.dtype = DType::f32;
    sums.shape.pop_back();
    sums.strides = {sums.shape[1] * sums.shape[2], builder().context().constant(1), sums.shape[1]};
    return builder().external("aten._scaled_dot_product_flash_attention_for_cpu.default", operands, arguments,
                              "attention that the model writes out", {builder().type(query), sums});
  }

  Term with_lost_rows(const Term& out, const Term& sums, const Term& query, const Term& key,
                      std::optional<ValueId> mask) {
    Term log = term(builder().unsqueeze(sums, 3));
    Term largest = reduce(ops::ReduceOp::max, abs(query.computing()), {3}, true) *
                   reduce(ops::ReduceOp::max, abs(key.computing()), {2, 3}, true);
    Term lost = either(negated(apply(ScalarOp::isfinite, log)),
                       both(equal(log, 0), negated(less(largest, kSafeProduct))));
    if (mask)
      lost = either(lost, equal(reduce(ops::ReduceOp::max, term(*mask).computing(), {3}, true), -kInfinity));
    return where(lost, std::numeric_limits<double>::quiet_NaN(), out);
  }

  Rewrite& rewrite_;
  const Attention& attention_;
};

}  // namespace

Graph recognize_attention(const Graph& graph, target::Router& router) {
  Matcher matcher(graph);
  Rewrite rewrite(graph);
  const sym::Facts facts = facts_of(graph);
  auto wants_library = [&](const Node& product, const Attention& attention) {
    target::RouteQuery query{.op = "attention",
                             .dtype = graph.type(product.results[0]).dtype,
                             .width = attention.scores[3],
                             .widths = sym::range_of(attention.scores[3], facts)};
    if (product.source.valid()) query.source = graph.sources[product.source];
    return router.decide(query).choice == target::Choice::library;
  };
  for (const Node& node : graph.nodes) {
    std::optional<Attention> attention = matcher.match(node);
    if (!attention || !wants_library(node, *attention)) {
      rewrite.copy(node);
      continue;
    }
    rewrite.builder().set_source(node.source);
    Term rows = Call(rewrite, *attention).build();
    rewrite.replace(node, {rewrite.builder().reshape(rows, graph.type(node.results[0]).shape)});
  }
  return rewrite.finish();
}

}  // namespace kerf::graph
