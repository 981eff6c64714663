#pragma once
// The reductions: one row each in reduce_ops.def. A reduction folds yielded values over its axes, starting
// from the identity; the order of folding is not fixed for floating-point sums and products.
//
//   sum prod min max      min and max give NaN when any element is NaN, and order zeros: -0.0 below 0.0
//   any all               over bool
//   argmin argmax         yield (value, index i64): the index of the first extremum in index order, the first NaN
//                         if there is one. Identity: index INT64_MAX, which is never the answer of a non-empty fold.
//   argmax_last_nan       the same, but of several NaN the last: what eager's pools find
//   first_min first_max   yield the same: the value at that index. Zeros are equal: the first one's sign stays.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/dtype.h"

namespace kerf::ops {

enum class ReduceOp : uint8_t {
#define REDUCE(name, ...) name,
#include "ops/reduce_ops.def"
#undef REDUCE
};

struct ReduceInfo {
  std::string_view text;
  int yields = 1;             // 2: value, index
  bool index_result = false;  // result is the index (i64), not the value
  bool boolean = false;       // over bool only

  bool has_index() const { return yields == 2; }
};

const ReduceInfo& info(ReduceOp op);
inline std::string_view to_text(ReduceOp op) { return info(op).text; }
std::optional<ReduceOp> reduce_op_from_text(std::string_view text);

// The value a fold over nothing has, for the accumulator of `dtype` (the value's part where there is an index).
Scalar identity(ReduceOp op, DType dtype);

// One step of the fold for one-yield reductions.
Scalar combine(ReduceOp op, const Scalar& accumulator, const Scalar& value);

// Of the folds with an index: whether they look for the largest value, and whether (value, index) replaces
// (best, best_index).
bool seeks_largest(ReduceOp op);
bool replaces(ReduceOp op, const Scalar& value, int64_t index, const Scalar& best, int64_t best_index);

}  // namespace kerf::ops
