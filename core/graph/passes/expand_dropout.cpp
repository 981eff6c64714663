// native_dropout: a mask of elements kept with probability 1-p, and x * mask * 1/(1-p). The seed is drawn
// once a call of the graph; every node has its own range of counters.
#include "graph/passes/expand.h"

namespace kerf::graph {

namespace {

Term uniform(const Composite& composite, RandomState& random) {
  Builder& builder = composite.builder;
  const Shape& shape = composite.results[0].shape;
  if (!random.seed.valid()) random.seed = builder.node(Op::draw_seed, {}, {}, {})[0];
  ValueId draw = builder.node(Op::random_uniform, {random.seed},
                              {{Attr::offset, random.next}, {Attr::shape, shape}}, {})[0];
  random.next = random.next + sym::product(builder.context(), shape);
  return composite.term(draw);
}

}  // namespace

Expanded expand_native_dropout(const Composite& composite, RandomState& random) {
  Builder& builder = composite.builder;
  double p = composite.node.get<double>(Attr::p);
  Term x = composite.operands[0];
  if (p == 0 || !composite.node.get<bool>(Attr::train)) {
    ValueId all = builder.full(composite.results[1].shape, Scalar::of_int(DType::b1, 1));
    return {builder.copy(x, x.dtype()), all};
  }
  // Kept where u < 1-p; p = 1 keeps nothing, and infinities times 0 are NaN as in eager.
  Term mask = less(uniform(composite, random), 1 - p);
  Term wide = x.computing();
  Term y = wide * mask.in(wide.dtype()) * (p == 1 ? 0.0 : 1 / (1 - p));
  return {composite.result(0, y), mask};
}

}  // namespace kerf::graph
