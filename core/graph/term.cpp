#include "graph/term.h"

#include "graph/shape.h"

namespace kerf::graph {

using ops::ScalarOp;

Builder& Term::builder() const {
  CHECK(builder_, "a number has no builder");
  return *builder_;
}

ValueId Term::value() const {
  CHECK(builder_, "a number is no value");
  return value_;
}

Term Term::in(DType dtype) const { return {builder(), builder().cast(value_, dtype)}; }

Term Term::like(const Term& other) const {
  if (!is_number()) return *this;
  return {other.builder(), other.builder().constant(Scalar::of(other.dtype(), number_))};
}

Term apply(ScalarOp op, const Term& a) { return {a.builder(), a.builder().apply(op, {a})}; }

Term apply(ScalarOp op, const Term& a, const Term& b) {
  Builder& builder = a.is_number() ? b.builder() : a.builder();
  // Named first: the order of nodes does not depend on the compiler's order of evaluation.
  Term left = a.like(b), right = b.like(a);
  return {builder, builder.apply(op, {left, right})};
}

Term operator+(const Term& a, const Term& b) { return apply(ScalarOp::add, a, b); }
Term operator-(const Term& a, const Term& b) { return apply(ScalarOp::sub, a, b); }
Term operator*(const Term& a, const Term& b) { return apply(ScalarOp::mul, a, b); }
Term operator/(const Term& a, const Term& b) { return apply(ScalarOp::div, a, b); }
Term operator-(const Term& a) { return apply(ScalarOp::neg, a); }

Term less(const Term& a, const Term& b) { return apply(ScalarOp::lt, a, b); }
Term less_equal(const Term& a, const Term& b) { return apply(ScalarOp::le, a, b); }
Term greater(const Term& a, const Term& b) { return apply(ScalarOp::gt, a, b); }
Term greater_equal(const Term& a, const Term& b) { return apply(ScalarOp::ge, a, b); }
Term equal(const Term& a, const Term& b) { return apply(ScalarOp::eq, a, b); }
Term not_equal(const Term& a, const Term& b) { return apply(ScalarOp::ne, a, b); }
Term both(const Term& a, const Term& b) { return apply(ScalarOp::and_, a, b); }
Term either(const Term& a, const Term& b) { return apply(ScalarOp::or_, a, b); }
Term negated(const Term& a) { return apply(ScalarOp::not_, a); }

Term where(const Term& condition, const Term& a, const Term& b) {
  Term left = a.like(b), right = b.like(a);
  return {condition.builder(), condition.builder().apply(ScalarOp::where, {condition, left, right})};
}

Term abs(const Term& a) { return apply(ScalarOp::abs, a); }
Term exp(const Term& a) { return apply(ScalarOp::exp, a); }
Term expm1(const Term& a) { return apply(ScalarOp::expm1, a); }
Term log(const Term& a) { return apply(ScalarOp::log, a); }
Term log1p(const Term& a) { return apply(ScalarOp::log1p, a); }
Term sqrt(const Term& a) { return apply(ScalarOp::sqrt, a); }
Term rsqrt(const Term& a) { return apply(ScalarOp::rsqrt, a); }
Term tanh(const Term& a) { return apply(ScalarOp::tanh, a); }
Term erf(const Term& a) { return apply(ScalarOp::erf, a); }
Term sigmoid(const Term& a) { return apply(ScalarOp::sigmoid, a); }
Term isnan(const Term& a) { return apply(ScalarOp::isnan, a); }
Term minimum(const Term& a, const Term& b) { return apply(ScalarOp::minimum, a, b); }
Term maximum(const Term& a, const Term& b) { return apply(ScalarOp::maximum, a, b); }

Term reduce(ops::ReduceOp op, const Term& a, const std::vector<int64_t>& dims, bool keepdim) {
  return {a.builder(), a.builder().reduce(op, a, dims, keepdim)};
}

Term sum(const Term& a, const std::vector<int64_t>& dims, bool keepdim) {
  return reduce(ops::ReduceOp::sum, a, dims, keepdim);
}

Term count(const Term& a, const std::vector<int64_t>& dims, DType dtype) {
  sym::Expr elements = a.builder().context().constant(1);
  for (int64_t dim : dims) elements = elements * a.type().shape[static_cast<size_t>(dim)];
  if (elements.is_constant())
    return {a.builder(), a.builder().constant(Scalar::of_int(dtype, elements.constant()))};
  return Term(a.builder(), a.builder().size_value(elements)).in(dtype);
}

}  // namespace kerf::graph
