// group_norm: as layer_norm over the channels of each group and all dimensions after them, with a weight and a bias
// a channel; in f32 (f64 for f64).
#include "graph/passes/expand.h"

namespace kerf::graph {

namespace {

using Dims = std::vector<int64_t>;

bool is_present(const Composite& composite, size_t i) {
  return composite.node.get<Dims>(Attr::output_mask)[i] != 0;
}

// [N, C, ...] as [N, groups, channels of a group, elements of a channel].
Term in_groups(const Composite& composite, const Term& x) {
  const Shape& shape = x.type().shape;
  int64_t groups = composite.node.get<int64_t>(Attr::groups);
  sym::Expr elements = sym::product(composite.builder.context(), std::span(shape).subspan(2));
  return composite.term(composite.builder.reshape(x, {shape[0], composite.builder.context().constant(groups),
                                                      sym::floor_div(shape[1], groups), elements}));
}

// A value a channel as [groups, channels of a group, 1], and a value a group as [N, groups, 1, 1].
Term of_channels(const Composite& composite, const Term& vector, const Term& grouped) {
  const Shape& shape = grouped.type().shape;
  return composite.term(composite.builder.reshape(
      vector.in(grouped.dtype()), {shape[1], shape[2], composite.builder.context().constant(1)}));
}

Term of_groups(const Composite& composite, const Term& statistic, const Term& grouped) {
  const Shape& shape = grouped.type().shape;
  sym::Expr one = composite.builder.context().constant(1);
  return composite.term(
      composite.builder.reshape(statistic.in(grouped.dtype()), {shape[0], shape[1], one, one}));
}

Term mean_of_group(const Term& x) { return sum(x, {2, 3}, true) / count(x, {2, 3}, x.dtype()); }

}  // namespace

// input [, weight] [, bias]: out, mean, rstd
Expanded expand_group_norm(const Composite& composite) {
  Term x = in_groups(composite, composite.computing(0));
  Term mean = mean_of_group(x);
  Term deviation = x - mean;
  Term rstd = rsqrt(mean_of_group(deviation * deviation) + composite.node.get<double>(Attr::eps));
  Term y = deviation * rstd;
  size_t next = 1;
  if (is_present(composite, 0)) y = y * of_channels(composite, composite.operands[next++], x);
  if (is_present(composite, 1)) y = y + of_channels(composite, composite.operands[next], x);
  return {composite.result(0, y), composite.result(1, running_mean(mean, rstd)), composite.result(2, rstd)};
}

// grad, input, mean, rstd [, weight]: dinput, dweight, dbias, with the formulas of layer_norm
Expanded expand_group_norm_backward(const Composite& composite) {
  Term grad = in_groups(composite, composite.computing(0));
  Term x = in_groups(composite, composite.computing(1));
  Term rstd = of_groups(composite, composite.operands[3], x);
  Term h = (x - of_groups(composite, composite.operands[2], x)) * rstd;
  Term none = composite.term(composite.builder.constant(Scalar::of(x.dtype(), 0)));

  Term dx = none, dweight = none, dbias = none;
  if (is_present(composite, 0)) {
    Term g = composite.operands.size() > 4 ? grad * of_channels(composite, composite.operands[4], x) : grad;
    dx = rstd * (g - mean_of_group(g) - h * mean_of_group(g * h));
  }
  if (is_present(composite, 1)) dweight = sum(grad * h, {0, 3}, false);
  if (is_present(composite, 2)) dbias = sum(grad, {0, 3}, false);
  return {composite.result(0, dx), composite.result(1, dweight), composite.result(2, dbias)};
}

}  // namespace kerf::graph
