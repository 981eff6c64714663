// gelu, exact (by erf) and by its tanh approximation, and the exact derivative of each.
#include <numbers>
#include <string>

#include "graph/passes/expand.h"

namespace kerf::graph {

namespace {

constexpr double kSqrtHalf = 1 / std::numbers::sqrt2;
constexpr double kTanhScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2/pi)
constexpr double kTanhCube = 0.044715;
constexpr double kPdfScale = kSqrtHalf * std::numbers::inv_sqrtpi;  // 1/sqrt(2 pi)

bool by_tanh(const Composite& composite) {
  return composite.node.get<std::string>(Attr::approximate) == "tanh";
}

Term tanh_of_inner(const Term& x) {
  Term cube = x * x * x;
  return tanh(kTanhScale * (x + kTanhCube * cube));
}

}  // namespace

Expanded expand_gelu(const Composite& composite) {
  Term x = composite.computing(0);
  Term factor = by_tanh(composite) ? tanh_of_inner(x) : erf(x * kSqrtHalf);
  return {composite.result(0, 0.5 * x * (1.0 + factor))};
}

// grad, input
Expanded expand_gelu_backward(const Composite& composite) {
  Term grad = composite.computing(0), x = composite.computing(1);
  if (!by_tanh(composite)) {
    Term cdf = 0.5 * (1.0 + erf(x * kSqrtHalf));
    Term pdf = exp(-0.5 * x * x) * kPdfScale;
    return {composite.result(0, grad * (cdf + x * pdf))};
  }
  Term t = tanh_of_inner(x);
  Term left = 0.5 * (1.0 + t);
  Term inner_slope = kTanhScale * (1.0 + 3 * kTanhCube * (x * x));
  Term right = 0.5 * x * (1.0 - t * t) * inner_slope;
  return {composite.result(0, grad * (left + right))};
}

}  // namespace kerf::graph
