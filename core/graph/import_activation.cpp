// Activations and other pointwise calls of several steps, each in the formula of eager's kernel: its limit
// cases (NaN, infinities, boundaries) are part of the meaning. Where its vector loop and its scalar tail
// disagree about NaN, the vector loop counts. All are computed in f32 (f64 for f64) with
// numbers unrounded, and rounded once.
#include <cmath>
#include <limits>
#include <numbers>

#include "graph/import_call.h"

namespace kerf::graph {

namespace {

bool is_symbolic(const ImportCall& call, size_t first) {
  for (size_t i = first; i < call.call.arguments.size(); ++i)
    if (call.is_symbolic(i)) return true;
  return false;
}

// Holds x inside the bounds as std::max and std::min do: NaN and -0.0 of x stay.
Term at_least(const Term& x, const Term& bound) { return where(less(x, bound), bound, x); }
Term at_most(const Term& x, const Term& bound) { return where(greater(x, bound), bound, x); }

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Term relu6_of_shifted(const Term& x) { return at_most(at_least(x + 3.0, 0.0), 6.0); }

}  // namespace

Imported import_relu(const ImportCall& call) {
  Term x = call.tensor(0);
  return rounded(call, at_least(x.computing(), 0.0));
}

// self, min, max, numbers, sizes or None. A NaN bound gives NaN.
Imported import_clamp(const ImportCall& call) {
  DType dtype = call.result().dtype;
  Term x = call.tensor(0).in(dtype).computing();
  for (size_t i : {size_t{1}, size_t{2}})
    if (!call.is_none(i) && !call.is_symbolic(i) && std::isnan(call.number(i)))
      return one(call.builder.full(x.type().shape, Scalar::of(dtype, kNaN)));
  if (!call.is_none(1)) x = at_least(x, call.operand(1, dtype).computing());
  if (call.argument(2).value.index() != 0) x = at_most(x, call.operand(2, dtype).computing());
  return rounded(call, x);
}

// clamp_max: self, max
Imported import_clamp_max(const ImportCall& call) {
  Call both = call.call;
  both.arguments.insert(both.arguments.begin() + 1, Argument{});
  return import_clamp({call.builder, both, call.row});
}

// clamp.Tensor: self, min, max, tensors or None.
Imported import_clamp_tensor(const ImportCall& call) {
  DType dtype = call.result().dtype;
  Term x = call.tensor(0).in(dtype).computing();
  if (call.is_tensor(1)) x = maximum(x, computing(call, 1));
  if (call.is_tensor(2)) x = minimum(x, computing(call, 2));
  return rounded(call, x);
}

// self, threshold, value
Imported import_threshold(const ImportCall& call) {
  if (is_symbolic(call, 1)) return decline("symbolic bounds");
  DType dtype = compute_dtype(call.result().dtype);
  Term x = call.tensor(0).in(dtype), bound = call.operand(1, dtype), value = call.operand(2, dtype);
  return rounded(call, where(less_equal(x, bound), value, x));
}

// grad, self, threshold
Imported import_threshold_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1);
  return rounded(call, where(less_equal(x, call.operand(2, x.dtype())), 0.0, grad));
}

// self, negative_slope
Imported import_leaky_relu(const ImportCall& call) {
  Term x = computing(call, 0);
  return rounded(call, where(greater(x, 0.0), x, x * call.number(1)));
}

// grad, self, negative_slope, self_is_result
Imported import_leaky_relu_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1);
  return rounded(call, where(greater(x, 0.0), grad, grad * call.number(2)));
}

// self, weight: the weight broadcasts along dimension 1.
Imported import_prelu(const ImportCall& call) {
  Term x = computing(call, 0), weight = computing(call, 1);
  return rounded(call, where(greater(x, 0.0), x, weight * x));
}

// grad, self, weight: the gradients of both, that of the weight not yet summed.
Imported import_prelu_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1), weight = computing(call, 2);
  Term positive = greater(x, 0.0);
  Term of_x = where(positive, grad, weight * grad), of_weight = where(positive, 0.0, x * grad);
  return std::vector<ValueId>{of_x.in(call.result(0).dtype), of_weight.in(call.result(1).dtype)};
}

// grad, output
Imported import_sigmoid_backward(const ImportCall& call) {
  Term grad = computing(call, 0), y = computing(call, 1);
  return rounded(call, grad * (1.0 - y) * y);
}

Imported import_tanh_backward(const ImportCall& call) {
  Term grad = computing(call, 0), y = computing(call, 1);
  return rounded(call, grad * (1.0 - y * y));
}

Imported import_silu(const ImportCall& call) {
  Term x = computing(call, 0);
  return rounded(call, x / (1.0 + exp(-x)));
}

// grad, self
Imported import_silu_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1);
  Term s = sigmoid(x);
  return rounded(call, grad * s * (1.0 + x * (1.0 - s)));
}

Imported import_hardsigmoid(const ImportCall& call) {
  return rounded(call, relu6_of_shifted(computing(call, 0)) / 6.0);
}

Imported import_hardsigmoid_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1);
  Term above = greater(x, -3.0), below = less(x, 3.0);
  constexpr double kSixth = 1.0F / 6.0F;  // as eager has it, for f64 too
  return rounded(call, where(both(above, below), grad * kSixth, 0.0));
}

Imported import_hardswish(const ImportCall& call) {
  Term x = computing(call, 0);
  return rounded(call, x * relu6_of_shifted(x) / 6.0);
}

Imported import_hardswish_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1);
  Term middle = grad * (x / 3.0 + 0.5);
  Term upper = where(greater_equal(x, 3.0), grad, middle);
  return rounded(call, where(less_equal(x, -3.0), 0.0, upper));
}

// grad, self, min_val, max_val
Imported import_hardtanh_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1);
  Term above = greater(x, call.number(2)), below = less(x, call.number(3));
  return rounded(call, where(both(above, below), grad, 0.0));
}

// self, alpha, scale, input_scale
Imported import_elu(const ImportCall& call) {
  Term x = computing(call, 0);
  double alpha = call.number(1), scale = call.number(2), input_scale = call.number(3);
  Term negative = expm1(x * input_scale) * (alpha * scale);
  return rounded(call, where(less(x, 0.0), negative, x * scale));
}

// grad, alpha, scale, input_scale, is_result, self or result
Imported import_elu_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 5);
  double scale = call.number(2), input_scale = call.number(3), coefficient = call.number(1) * scale;
  Term negative = call.boolean(4) ? grad * input_scale * (x + coefficient)
                                  : grad * (input_scale * coefficient) * exp(x * input_scale);
  return rounded(call, where(greater(x, 0.0), grad * scale, negative));
}

// self, alpha
Imported import_celu(const ImportCall& call) {
  Term x = computing(call, 0);
  double alpha = call.number(1);
  return rounded(call, where(less(x, 0.0), expm1(x * (1.0 / alpha)) * alpha, x));
}

// self, beta, threshold
Imported import_softplus(const ImportCall& call) {
  Term x = computing(call, 0);
  double beta = call.number(1);
  Term scaled = x * beta;
  return rounded(call, where(greater(scaled, call.number(2)), x, log1p(exp(scaled)) / beta));
}

// grad, self, beta, threshold
Imported import_softplus_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1);
  Term scaled = x * call.number(2);
  Term z = exp(scaled);
  return rounded(call, where(greater(scaled, call.number(3)), grad, grad * z / (z + 1.0)));
}

Imported import_mish(const ImportCall& call) {
  Term x = computing(call, 0);
  return rounded(call, x * tanh(log1p(exp(x))));
}

Imported import_mish_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1);
  Term s = sigmoid(x), t = tanh(log1p(exp(x)));
  return rounded(call, grad * (t + x * s * (1.0 - t * t)));
}

// self, dim: first half times sigmoid of the second.
Imported import_glu(const ImportCall& call) {
  Term x = computing(call, 0);
  int64_t dim = call.dim(1, x.type().rank());
  sym::Expr half = call.result().shape[static_cast<size_t>(dim)];
  Term a = call.term(call.builder.slice(x, dim, call.constant(0), half, 1));
  Term b = call.term(call.builder.slice(x, dim, half, half, 1));
  return rounded(call, a * sigmoid(b));
}

// grad, self, dim
Imported import_glu_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1);
  int64_t dim = call.dim(2, x.type().rank());
  sym::Expr half = grad.type().shape[static_cast<size_t>(dim)];
  Term a = call.term(call.builder.slice(x, dim, call.constant(0), half, 1));
  Term s = sigmoid(call.term(call.builder.slice(x, dim, half, half, 1)));
  std::vector<ValueId> halves = {grad * s, grad * s * (1.0 - s) * a};
  return rounded(call, call.term(call.builder.node(Op::cat, halves, {{Attr::dim, dim}}, {})[0]));
}

// self, lambd
Imported import_softshrink(const ImportCall& call) {
  Term x = computing(call, 0);
  double bound = call.number(1);
  Term above = greater_equal(x, -bound), below = less_equal(x, bound);
  Term outside = where(greater(x, 0.0), x - bound, x + bound);
  return rounded(call, where(both(above, below), 0.0, outside));
}

Imported import_hardshrink(const ImportCall& call) {
  Term x = computing(call, 0);
  double bound = call.number(1);
  Term above = greater_equal(x, -bound), below = less_equal(x, bound);
  return rounded(call, where(both(above, below), 0.0, x));
}

// softshrink, hardshrink: grad, self, lambd
Imported import_shrink_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1);
  double bound = call.number(2);
  Term below = less(x, -bound), above = greater(x, bound);
  return rounded(call, where(either(below, above), grad, 0.0));
}

// self: value, and exp(-|x|) for the backward.
Imported import_log_sigmoid(const ImportCall& call) {
  Term x = computing(call, 0);
  Term z = exp(-abs(x));
  Term value = minimum(x, 0.0) - log1p(z);
  if (call.result(1).rank() != call.result(0).rank()) return decline("a buffer of another shape");
  return std::vector<ValueId>{value.in(call.result(0).dtype), z.in(call.result(1).dtype)};
}

// grad, self, exp(-|self|) from the forward
Imported import_log_sigmoid_backward(const ImportCall& call) {
  Term grad = computing(call, 0), x = computing(call, 1), z = computing(call, 2);
  Term fraction = z / (z + 1.0);
  return rounded(call, where(less(x, 0.0), 1.0 - fraction, fraction) * grad);
}

// self, end, weight: from the end that is nearer.
Imported import_lerp(const ImportCall& call) {
  Term start = computing(call, 0), end = computing(call, 1);
  Term weight = call.operand(2, start.dtype());
  Term step = end - start;
  Term from_start = start + weight * step, from_end = end - step * (1.0 - weight);
  return rounded(call, where(less(abs(weight), 0.5), from_start, from_end));
}

// self, tensor1, tensor2, value
Imported import_addcmul(const ImportCall& call) {
  DType dtype = compute_dtype(call.result().dtype);
  Term x = computing(call, 0), a = computing(call, 1), b = computing(call, 2), value = call.operand(3, dtype);
  return rounded(call, x + value * a * b);
}

Imported import_addcdiv(const ImportCall& call) {
  DType dtype = compute_dtype(call.result().dtype);
  if (!is_floating(dtype)) return decline("of integers");
  Term x = computing(call, 0), a = computing(call, 1), b = computing(call, 2), value = call.operand(3, dtype);
  return rounded(call, x + value * a / b);
}

Imported import_square(const ImportCall& call) {
  Term x = computing(call, 0);
  return rounded(call, x * x);
}

Imported import_frac(const ImportCall& call) {
  Term x = computing(call, 0);
  return rounded(call, x - apply(ops::ScalarOp::trunc, x));
}

// self, eps: eps None leaves the argument as it is. The bounds are numbers of the dtype: 1 - eps may be 1.
Imported import_logit(const ImportCall& call) {
  Term x = computing(call, 0);
  if (!call.is_none(1) && call.number(1) >= 0) {
    DType dtype = call.result().dtype;
    double low = Scalar::of(dtype, call.number(1)).f, high = Scalar::of(dtype, 1.0 - low).f;
    x = at_most(at_least(x, low), high);
  }
  return rounded(call, log(x / (1.0 - x)));
}

// xlogy, xlog1py: self * log(other) or self * log1p(other), 0 where self is 0 and other no NaN.
Imported import_xlogy(const ImportCall& call) {
  DType dtype = compute_dtype(call.result().dtype);
  Term x = call.operand(0, dtype), y = call.operand(1, dtype);
  Term product = where(equal(x, 0.0), 0.0, x * apply(call.row.scalar, y));
  return rounded(call, where(isnan(y), kNaN, product));
}

// special_entr: -self * log(self), 0 at zeros of both signs.
Imported import_entr(const ImportCall& call) {
  Term x = computing(call, 0);
  Term inside = where(equal(x, 0.0), 0.0, -x * log(x));
  return rounded(call, where(less(x, 0.0), -std::numeric_limits<double>::infinity(), inside));
}

// deg2rad, rad2deg: self * `number`
Imported import_scaled(const ImportCall& call) { return rounded(call, computing(call, 0) * call.row.number); }

// sin(pi * self) / (pi * self), 1 at zeros of both signs.
Imported import_sinc(const ImportCall& call) {
  Term x = computing(call, 0), angle = x * std::numbers::pi;
  return rounded(call, where(equal(x, 0.0), 1.0, apply(ops::ScalarOp::sin, angle) / angle));
}

// self, values: 0 below zero, 1 above, values at zero.
Imported import_heaviside(const ImportCall& call) {
  Term x = call.tensor(0), values = call.tensor(1);
  if (x.dtype() == DType::b1) return decline("of bool");
  Term wide = x.computing();
  Term step = greater(wide, 0.0).in(values.dtype());
  return one(where(equal(wide, 0.0), values, step));
}

// isposinf, isneginf: `number` is the infinity's sign.
Imported import_signed_infinity(const ImportCall& call) {
  Term x = call.tensor(0).computing();
  if (!is_floating(x.dtype())) return one(call.builder.full(x.type().shape, Scalar::of_int(DType::b1, 0)));
  return one(equal(x, call.row.number * std::numeric_limits<double>::infinity()));
}

// self, nan, posinf, neginf: by default 0, the largest and the smallest finite value.
Imported import_nan_to_num(const ImportCall& call) {
  DType dtype = call.result().dtype;
  if (!is_floating(dtype)) return one(call.builder.copy(call.tensor(0), dtype));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Term x = computing(call, 0);
  double largest = dtype == DType::f64   ? std::numeric_limits<double>::max()
                   : dtype == DType::f32 ? std::numeric_limits<float>::max()
                   : dtype == DType::f16 ? 65504.0
                                         : 0x1.fep127;
  double nan = call.is_none(1) ? 0 : call.number(1);
  double positive = call.is_none(2) ? largest : call.number(2),
         negative = call.is_none(3) ? -largest : call.number(3);
  Term finite = where(equal(x, kInfinity), positive, where(equal(x, -kInfinity), negative, x));
  return rounded(call, where(isnan(x), nan, finite));
}

}  // namespace kerf::graph
