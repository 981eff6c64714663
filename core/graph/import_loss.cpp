// Losses, each in the formula of eager's kernel, computed in f32 (f64 for f64). Unlike eager's, the terms of a
// half-precision loss are not rounded before they are summed.
#include <numeric>

#include "graph/import_call.h"

namespace kerf::graph {

namespace {

enum class Reduction : uint8_t { none, mean, sum };

Reduction reduction(const ImportCall& call, size_t i) { return static_cast<Reduction>(call.integer(i)); }

std::vector<int64_t> all_dims(const Term& x) {
  std::vector<int64_t> dims(x.type().rank());
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

Imported reduced(const ImportCall& call, const Term& terms, size_t reduction_at) {
  Reduction how = reduction(call, reduction_at);
  std::vector<int64_t> dims = all_dims(terms);
  if (how == Reduction::none || dims.empty()) return rounded(call, terms);
  Term total = sum(terms, dims, false);
  return rounded(call, how == Reduction::mean ? total / count(terms, dims, terms.dtype()) : total);
}

// What the gradient of the loss gives to each element of x.
Term share(const ImportCall& call, const Term& grad, const Term& x, size_t reduction_at) {
  if (reduction(call, reduction_at) != Reduction::mean) return grad;
  return grad / count(x, all_dims(x), x.dtype());
}

Term log_sigmoid(const Term& x) { return minimum(x, 0.0) - log1p(exp(-abs(x))); }

}  // namespace

// self, target, reduction
Imported import_mse_loss(const ImportCall& call) {
  Term difference = computing(call, 0) - computing(call, 1);
  return reduced(call, difference * difference, 2);
}

// grad, self, target, reduction
Imported import_mse_loss_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1), target = computing(call, 2);
  return rounded(call, share(call, grad, x, 3) * 2.0 * (x - target));
}

// self, target, reduction, beta
Imported import_smooth_l1_loss(const ImportCall& call) {
  Term z = abs(computing(call, 0) - computing(call, 1));
  double beta = call.number(3);
  return reduced(call, where(less(z, beta), z * 0.5 * z / beta, z - 0.5 * beta), 2);
}

// grad, self, target, reduction, beta
Imported import_smooth_l1_loss_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1), difference = x - computing(call, 2);
  double beta = call.number(4);
  Term one_sided = where(greater(difference, 0.0), Term(1.0).like(x), -1.0);
  Term slope = where(greater_equal(abs(difference), beta), one_sided, difference / beta);
  return rounded(call, share(call, grad, x, 3) * slope);
}

// self, target, reduction, delta
Imported import_huber_loss(const ImportCall& call) {
  Term z = abs(computing(call, 0) - computing(call, 1));
  double delta = call.number(3);
  return reduced(call, where(less_equal(z, delta), z * 0.5 * z, (z - 0.5 * delta) * delta), 2);
}

// grad, self, target, reduction, delta
Imported import_huber_loss_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1), difference = x - computing(call, 2);
  double delta = call.number(4);
  Term below = less_equal(difference, -delta), above = greater_equal(difference, delta);
  Term slope = where(below, -delta, where(above, delta, difference));
  return rounded(call, share(call, grad, x, 3) * slope);
}

// self, target, reduction
Imported import_soft_margin_loss(const ImportCall& call) {
  return reduced(call, log1p(exp(-computing(call, 1) * computing(call, 0))), 2);
}

// grad, self, target, reduction
Imported import_soft_margin_loss_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1), target = computing(call, 2);
  Term z = exp(-target * x);
  return rounded(call, -target * z * share(call, grad, x, 3) / (z + 1.0));
}

// grad, self, target, weight, reduction
Imported import_bce_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1), target = computing(call, 2);
  constexpr double kLeast = 1e-12;
  Term product = (1.0 - x) * x;
  Term slope = (x - target) / where(less(product, kLeast), kLeast, product);
  if (call.is_tensor(3)) slope = slope * computing(call, 3);
  return rounded(call, share(call, grad, x, 4) * slope);
}

// self, target, weight, pos_weight, reduction
Imported import_bce_with_logits(const ImportCall& call) {
  Term x = computing(call, 0), target = computing(call, 1);
  Term value = log_sigmoid(x);
  if (call.is_tensor(3)) value = value * ((computing(call, 3) - 1.0) * target + 1.0);
  Term loss = (1.0 - target) * x - value;
  if (call.is_tensor(2)) loss = loss * computing(call, 2);
  return reduced(call, loss, 4);
}

}  // namespace kerf::graph
