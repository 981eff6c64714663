// softmax and log_softmax along one dimension, computed in f32 (f64 for f64). The largest element is
// subtracted first: nothing overflows, and a row of -inf gives NaN as eager does (zeros in the safe form).
#include <limits>

#include "graph/passes/expand.h"

namespace kerf::graph {

namespace {

std::vector<int64_t> dim_of(const Composite& composite) { return {composite.node.get<int64_t>(Attr::dim)}; }

Term softmax(const Term& x, const Term& largest, const std::vector<int64_t>& dim) {
  Term e = exp(x - largest);
  return e / sum(e, dim, true);
}

Term largest_along(const Term& x, const std::vector<int64_t>& dim) {
  return reduce(ops::ReduceOp::max, x, dim, true);
}

}  // namespace

Expanded expand_softmax(const Composite& composite) {
  Term x = composite.computing(0);
  std::vector<int64_t> dim = dim_of(composite);
  return {composite.result(0, softmax(x, largest_along(x, dim), dim))};
}

Expanded expand_safe_softmax(const Composite& composite) {
  Term x = composite.computing(0);
  std::vector<int64_t> dim = dim_of(composite);
  Term largest = largest_along(x, dim);
  Term y = softmax(x, largest, dim);
  return {composite.result(0, where(equal(largest, -std::numeric_limits<double>::infinity()), 0.0, y))};
}

Expanded expand_log_softmax(const Composite& composite) {
  Term x = composite.computing(0);
  std::vector<int64_t> dim = dim_of(composite);
  Term shifted = x - largest_along(x, dim);
  return {composite.result(0, shifted - log(sum(exp(shifted), dim, true)))};
}

// grad, output
Expanded expand_softmax_backward(const Composite& composite) {
  Term grad = composite.computing(0), y = composite.computing(1);
  Term inner = sum(grad * y, dim_of(composite), true);
  return {composite.result(0, (grad - inner) * y)};
}

Expanded expand_log_softmax_backward(const Composite& composite) {
  Term grad = composite.computing(0), y = composite.computing(1);
  Term total = sum(grad, dim_of(composite), true);
  return {composite.result(0, grad - exp(y) * total)};
}

}  // namespace kerf::graph
