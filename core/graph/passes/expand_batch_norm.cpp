// batch_norm: statistics of each channel (dimension 1) over all other dimensions, in f32 (f64 for f64). With w = 1
// and b = 0 where there are none:
//   y = (x - mean) * (rstd * w) + b      rstd = 1 / sqrt(variance + eps), the mean square around the mean
// running statistics move by `momentum` towards the mean and towards the sum of squares over n - 1, which is NaN
// for a single element a channel, as in eager. The gradients, with d = x - mean and n elements a channel:
//   dweight = rstd * sum(dy * d)      dbias = sum(dy)
//   dx = (dy - sum(dy) / n - d * rstd * rstd * sum(dy * d) / n) * (rstd * w)
// and dx = dy * (rstd * w) where the statistics do not depend on the input.
#include "graph/passes/expand.h"

namespace kerf::graph {

namespace {

using Dims = std::vector<int64_t>;

bool is_present(const Composite& composite, size_t i) {
  return composite.node.get<Dims>(Attr::output_mask)[i] != 0;
}

// All dimensions but that of the channels.
Dims folded_dims(const Term& x) {
  Dims dims = {0};
  for (size_t d = 2; d < x.type().rank(); ++d) dims.push_back(static_cast<int64_t>(d));
  return dims;
}

Term sum_of_channel(const Term& x) { return sum(x, folded_dims(x), false); }

// The number of elements of a channel, without `but` of them.
Term elements_of_channel(const Term& x, int64_t but = 0) {
  sym::Expr elements = x.builder().context().constant(1);
  for (int64_t dim : folded_dims(x)) elements = elements * x.type().shape[static_cast<size_t>(dim)];
  elements = elements - but;
  if (elements.is_constant())
    return {x.builder(), x.builder().constant(Scalar::of_int(x.dtype(), elements.constant()))};
  return Term(x.builder(), x.builder().size_value(elements)).in(x.dtype());
}

// A vector over channels against tensors like x, in its dtype.
Term along_channels(const Term& vector, const Term& x) {
  Shape shape(x.type().rank(), x.builder().context().constant(1));
  shape[1] = x.type().shape[1];
  return {x.builder(), x.builder().reshape(vector.in(x.dtype()), shape)};
}

// (deviation * (rstd * weight)) + bias, where operands `next` and on are the weight and bias that are there.
Term transformed(const Composite& composite, const Term& deviation, Term rstd, size_t next) {
  if (is_present(composite, 0)) rstd = rstd * composite.operands[next++].in(rstd.dtype());
  Term y = deviation * along_channels(rstd, deviation);
  return is_present(composite, 1) ? y + along_channels(composite.operands[next], y) : y;
}

Term moved(const Term& running, const Term& now, double momentum) {
  return now * momentum + running.in(now.dtype()) * (1 - momentum);
}

}  // namespace

// input [, weight] [, bias] [, running mean, running variance]
Expanded expand_batch_norm(const Composite& composite) {
  Term x = composite.computing(0);
  Term elements = elements_of_channel(x);
  Term mean = sum_of_channel(x) / elements;
  Term deviation = x - along_channels(mean, x);
  Term squares = sum_of_channel(deviation * deviation);
  Term rstd = rsqrt(squares / elements + composite.node.get<double>(Attr::eps));
  Expanded results = {composite.result(0, transformed(composite, deviation, rstd, 1)),
                      composite.result(1, mean), composite.result(2, rstd)};
  if (is_present(composite, 2)) {
    size_t running = composite.operands.size() - 2;
    double momentum = composite.node.get<double>(Attr::momentum);
    Term variance = squares / elements_of_channel(x, 1);
    results.push_back(composite.result(3, moved(composite.operands[running], mean, momentum)));
    results.push_back(composite.result(4, moved(composite.operands[running + 1], variance, momentum)));
  } else {
    Term none = composite.term(composite.builder.constant(Scalar::of(x.dtype(), 0)));
    for (size_t i = 3; i < 5; ++i) results.push_back(composite.result(i, none));
  }
  return results;
}

// input, mean, variance [, weight] [, bias]
Expanded expand_batch_norm_inference(const Composite& composite) {
  Term x = composite.computing(0);
  Term rstd = rsqrt(composite.operands[2].in(x.dtype()) + composite.node.get<double>(Attr::eps));
  Term deviation = x - along_channels(composite.operands[1], x);
  return {composite.result(0, transformed(composite, deviation, rstd, 3))};
}

// grad, input, mean, rstd [, weight]; a masked result is a 0-d zero that nobody reads.
Expanded expand_batch_norm_backward(const Composite& composite) {
  Term grad = composite.computing(0), x = composite.computing(1);
  Term deviation = x - along_channels(composite.operands[2], x);
  Term rstd = composite.operands[3].in(x.dtype());
  Term total = sum_of_channel(grad), product = sum_of_channel(grad * deviation);
  Term none = composite.term(composite.builder.constant(Scalar::of(x.dtype(), 0)));

  Term dx = none;
  if (is_present(composite, 0)) {
    dx = grad;
    if (composite.node.get<bool>(Attr::train)) {
      Term elements = elements_of_channel(x);
      Term slope = product / elements * rstd * rstd;
      dx = grad - along_channels(total / elements, x) - deviation * along_channels(slope, x);
    }
    Term factor = composite.operands.size() > 4 ? rstd * composite.operands[4].in(x.dtype()) : rstd;
    dx = dx * along_channels(factor, x);
  }
  Term dweight = is_present(composite, 1) ? product * rstd : none;
  return {composite.result(0, dx), composite.result(1, dweight),
          composite.result(2, is_present(composite, 2) ? total : none)};
}

}  // namespace kerf::graph
