#pragma once
// Max pools over windows, whatever the windows are: the largest elements with their positions, and the gradients by these.
#include "graph/window.h"

namespace kerf::graph {

// What windows hold: the largest element of each, as eager's loops find it, and its row-major position in the
// pooled dimensions.
struct Largest {
  Term values;     // in the dtype of `seen`
  Term positions;  // i64
};

// `seen` is what `windows` see of dimensions of these sizes, in the dtype it is compared in, with the least number of that dtype
// for what is not pooled.
Largest largest_of(const Term& seen, const std::vector<Windows>& windows,
                   const std::vector<sym::Expr>& sizes);

// The sum, for every element of dimensions of these sizes, of the gradients of the windows that chose it;
// `windows` are those that may contain it.
Term gradient_of_largest(const Term& grad, const Term& positions, const std::vector<Windows>& windows,
                         const std::vector<sym::Expr>& sizes);

}  // namespace kerf::graph
