// nll_loss over log-probabilities [N, C, ...] with targets [N, ...], or [C] with one target. A target outside 0..C-1 that is not ignore_index is an
// IndexError, from the gather's bound check; ignored targets read class 0 and count nothing.
#include <numeric>
#include <optional>

#include "graph/passes/expand.h"

namespace kerf::graph {

namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

Term with_batch(const Term& term, bool batched) {
  return batched ? term : Term(term.builder(), term.builder().unsqueeze(term, 0));
}

Term column(const Term& row) { return {row.builder(), row.builder().unsqueeze(row, 1)}; }

std::vector<int64_t> all_dims(const Term& term) {
  std::vector<int64_t> dims(term.type().rank());
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

struct Targets {
  Term valid;  // [N, ...] bool
  Term index;  // [N, ...], 0 where not valid
};

Targets targets(const Composite& composite, const Term& target) {
  Term index = with_batch(target, target.type().rank() > 0);
  Term valid = not_equal(index, static_cast<double>(composite.node.get<int64_t>(Attr::ignore_index)));
  return {valid, where(valid, index, 0.0)};
}

// The class weight of each target; nullopt where all weigh 1.
std::optional<Term> row_weights(const Composite& composite, const Term& index, size_t weight, DType dtype) {
  if (composite.operands.size() <= weight) return std::nullopt;
  ValueId picked = composite.builder.node(
      Op::index, {composite.operands[weight].in(dtype), index},
      {{Attr::dims, std::vector<int64_t>{0}}, {Attr::wrap, false}, {Attr::dim, int64_t{0}}}, {})[0];
  return composite.term(picked);
}

// Zero for ignored rows, even beside a weight that is NaN.
Term weighted(const Term& value, const std::optional<Term>& weights, const Term& valid) {
  return where(valid, weights ? value * *weights : value, 0.0);
}

}  // namespace

// input, target [, weight]: loss, total weight
Expanded expand_nll_loss(const Composite& composite) {
  Builder& builder = composite.builder;
  Term x = with_batch(composite.computing(0), composite.operands[0].type().rank() > 1);
  auto [valid, index] = targets(composite, composite.operands[1]);
  Term picked = composite.term(
      builder.squeeze(builder.node(Op::gather, {x, column(index)}, {{Attr::dim, int64_t{1}}}, {})[0], 1));
  std::optional<Term> weights = row_weights(composite, index, 2, x.dtype());
  Term losses = weighted(-picked, weights, valid);
  int64_t reduction = composite.node.get<int64_t>(Attr::reduction);
  // A single row without a batch dimension is summed as eager does.
  if (reduction == kNone && composite.operands[0].type().rank() > 1)
    return {composite.result(0, losses),
            composite.result(1, composite.term(builder.constant(Scalar::of(x.dtype(), 0))))};
  Term total = sum(weights ? where(valid, *weights, 0.0) : valid.in(x.dtype()), all_dims(valid), false);
  Term loss = sum(losses, all_dims(losses), false);
  return {composite.result(0, reduction == kMean ? loss / total : loss), composite.result(1, total)};
}

// grad, input, target, total weight [, weight]. Dense, one comparison an element: every element is written
// anyway.
Expanded expand_nll_loss_backward(const Composite& composite) {
  Builder& builder = composite.builder;
  const Shape& shape = composite.results[0].shape;
  Term grad = composite.computing(0);
  if (composite.node.get<int64_t>(Attr::reduction) == kMean)
    grad = grad / composite.operands[3].in(grad.dtype());
  auto [valid, index] = targets(composite, composite.operands[2]);
  Term rows = composite.term(builder.expand(grad, index.type().shape));
  Term row_grads = weighted(-rows, row_weights(composite, index, 4, grad.dtype()), valid);
  // Along the dimension of classes, which others may follow.
  sym::Expr one = builder.context().constant(1);
  Shape along(index.type().rank(), one);
  along[0] = shape.size() > 1 ? shape[1] : shape[0];
  Term classes = composite.term(
      builder.reshape(builder.iota(along[0], builder.context().constant(0), one, DType::i64), along));
  return {composite.result(0, where(equal(classes, column(index)), column(row_grads), 0.0))};
}

}  // namespace kerf::graph
