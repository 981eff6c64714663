#pragma once
// Term: a value or a number in a formula over graph values, so that composites and activations read like the
// mathematics they are:
//
//   Term y = x / (exp(-x) + 1.0);
//
// Every operator appends one node. A number takes the dtype of the value it meets, rounded to it; two numbers
// never meet. Nothing is promoted: both sides of an operator have one dtype (`in` converts).
#include <vector>

#include "graph/build.h"

namespace kerf::graph {

class Term {
 public:
  Term(Builder& builder, ValueId value) : builder_(&builder), value_(value) {}
  Term(double number) : number_(number) {}  // NOLINT: numbers in formulas are the point

  bool is_number() const { return builder_ == nullptr; }
  Builder& builder() const;
  ValueId value() const;
  operator ValueId() const { return value(); }  // NOLINT
  const TensorType& type() const { return builder().type(value()); }
  DType dtype() const { return type().dtype; }

  Term in(DType dtype) const;  // cast
  Term computing() const { return in(compute_dtype(dtype())); }
  Term like(const Term& other) const;  // a number as a constant of the other's dtype

 private:
  Builder* builder_ = nullptr;
  ValueId value_;
  double number_ = 0;
};

Term apply(ops::ScalarOp op, const Term& a);
Term apply(ops::ScalarOp op, const Term& a, const Term& b);

Term operator+(const Term& a, const Term& b);
Term operator-(const Term& a, const Term& b);
Term operator*(const Term& a, const Term& b);
Term operator/(const Term& a, const Term& b);
Term operator-(const Term& a);

Term less(const Term& a, const Term& b);
Term less_equal(const Term& a, const Term& b);
Term greater(const Term& a, const Term& b);
Term greater_equal(const Term& a, const Term& b);
Term equal(const Term& a, const Term& b);
Term not_equal(const Term& a, const Term& b);
Term both(const Term& a, const Term& b);                          // and, of bools
Term either(const Term& a, const Term& b);                        // or, of bools
Term negated(const Term& a);                                      // not, of a bool
Term where(const Term& condition, const Term& a, const Term& b);  // one of a and b is a value

Term abs(const Term& a);
Term exp(const Term& a);
Term expm1(const Term& a);
Term log(const Term& a);
Term log1p(const Term& a);
Term sqrt(const Term& a);
Term rsqrt(const Term& a);
Term tanh(const Term& a);
Term erf(const Term& a);
Term sigmoid(const Term& a);
Term isnan(const Term& a);
Term minimum(const Term& a, const Term& b);
Term maximum(const Term& a, const Term& b);

Term reduce(ops::ReduceOp op, const Term& a, const std::vector<int64_t>& dims, bool keepdim);
Term sum(const Term& a, const std::vector<int64_t>& dims, bool keepdim);

// The number of elements along `dims`, in `dtype`.
Term count(const Term& a, const std::vector<int64_t>& dims, DType dtype);

}  // namespace kerf::graph
