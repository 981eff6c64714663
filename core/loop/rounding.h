#pragma once
// How far a target's numbers may lie from the interpreter's because it rounds otherwise and folds in another order: a running
// error analysis. Every value has a bound; each step passes on those of its operands and adds its own rounding.
//
// Of an operation: what moving each operand to the ends of its bound does to the result, and the row's `ulp`, besides the half
// that the interpreter's own result is off. A result that is one of the operands, but for its sign, is exact. NaN and
// infinities have no bound: whether a sum overflows may depend on its order.
//
// Of a sum: the bounds of its elements, which may all go one way (they often share a mean), and the roundings of its n - 1
// additions. These are errors of mean zero, the k-th at most u |s_k| (u half an epsilon, s_k the sum so far), so that
// their sum exceeds kDeviations * u * sqrt(sum of s_k^2) in one of e^(kDeviations^2 / 2) / 2 cases (Hoeffding's
// inequality; Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019). The s_k are those of the interpreter's
// order, one element after another: trees and blocks add fewer and smaller ones.
#include <limits>
#include <span>

#include "base/dtype.h"
#include "ops/reduce_op.h"
#include "ops/scalar_op.h"

namespace kerf::loop {

inline constexpr double kDeviations = 6;  // 1 in 3e7
inline constexpr double kUnknown = std::numeric_limits<double>::infinity();

// Of `result`, given the bounds of the operands. kUnknown where nothing can be said.
double bound_of(ops::ScalarOp op, const Scalar& result, std::span<const Scalar> operands,
                std::span<const double> bounds);

// Of a fold that gives a value, step by step. An index is compared as it is.
class FoldBound {
 public:
  explicit FoldBound(ops::ReduceOp op) : op_(op) {}

  // `before` and `after`: the accumulator; bound: of the value that came to it.
  void step(const Scalar& before, const Scalar& value, const Scalar& after, double bound);
  // dtype: of the fold's result.
  double bound(DType dtype) const;

 private:
  ops::ReduceOp op_;
  double passed_on_ = 0;
  double squares_ = 0;  // of partial sums
  bool is_first_ = true;
};

}  // namespace kerf::loop
