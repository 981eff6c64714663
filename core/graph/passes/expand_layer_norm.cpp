// layer_norm over the trailing dimensions, in f32 (f64 for f64): mean and variance in two passes,
//   y = (x - mean) * rstd * weight + bias      rstd = 1 / sqrt(variance + eps)
// and its gradients, with h = (x - mean) * rstd and g = dy * weight:
//   dx = rstd * (g - mean(g) - h * mean(g * h))      dweight = sum(dy * h)      dbias = sum(dy)
// the means over the normalized dimensions, the sums over all others.
#include <numeric>

#include "graph/passes/expand.h"

namespace kerf::graph {

namespace {

using Dims = std::vector<int64_t>;

const Dims& dims_of(const Composite& composite) { return composite.node.get<Dims>(Attr::dims); }
const Dims& mask_of(const Composite& composite) { return composite.node.get<Dims>(Attr::output_mask); }

Term mean(const Term& x, const Dims& dims) { return sum(x, dims, true) / count(x, dims, x.dtype()); }

Term sum_over_rows(const Term& x, const Dims& normalized) {
  Dims outer(x.type().rank() - normalized.size());
  std::iota(outer.begin(), outer.end(), 0);
  return outer.empty() ? x : sum(x, outer, false);
}

}  // namespace

// input [, weight] [, bias]: out, mean, rstd
Expanded expand_layer_norm(const Composite& composite) {
  const Dims& dims = dims_of(composite);
  Term x = composite.computing(0);
  Term average = mean(x, dims);
  Term deviation = x - average;
  Term rstd = rsqrt(mean(deviation * deviation, dims) + composite.node.get<double>(Attr::eps));
  Term y = deviation * rstd;
  size_t next = 1;
  if (mask_of(composite)[0]) y = y * composite.operands[next++].in(x.dtype());
  if (mask_of(composite)[1]) y = y + composite.operands[next].in(x.dtype());
  return {composite.result(0, y), composite.result(1, running_mean(average, rstd)),
          composite.result(2, rstd)};
}

// grad, input, mean, rstd [, weight]: dinput, dweight, dbias; a masked one is a 0-d zero that nobody reads.
Expanded expand_layer_norm_backward(const Composite& composite) {
  const Dims& dims = dims_of(composite);
  Term grad = composite.computing(0), x = composite.computing(1);
  Term average = composite.operands[2].in(x.dtype()), rstd = composite.operands[3].in(x.dtype());
  Term h = (x - average) * rstd;
  Term g = composite.operands.size() > 4 ? grad * composite.operands[4].in(x.dtype()) : grad;
  Term none = composite.term(composite.builder.constant(Scalar::of(x.dtype(), 0)));

  Term dx = none, dweight = none, dbias = none;
  if (mask_of(composite)[0]) {
    Term inner = mean(g * h, dims);
    dx = rstd * (g - mean(g, dims) - h * inner);
  }
  if (mask_of(composite)[1]) dweight = sum_over_rows(grad * h, dims);
  if (mask_of(composite)[2]) dbias = sum_over_rows(grad, dims);
  return {composite.result(0, dx), composite.result(1, dweight), composite.result(2, dbias)};
}

}  // namespace kerf::graph
