#pragma once
// Graph values as the library sees them: strided windows into program buffers, made by a copy where needed; and the
// calls that take them.
#include <functional>

#include "lower/lowering.h"

namespace kerf::lower {

// The value where it is, if the library can hold such a view; else a row-major copy.
target::TensorView any_view(Lowering& lowering, graph::ValueId value);

// The value with these strides; a copy unless it has them.
target::TensorView view_with_strides(Lowering& lowering, graph::ValueId value,
                                     const std::vector<sym::Expr>& strides);

// Appends the call, with the node's results as its results and its source line. The results have eager's strides, or
// those that `strides_of` gives.
using StridesOf = std::function<std::vector<sym::Expr>(const graph::TensorType&)>;
void append_call(Lowering& lowering, graph::NodeId id, target::ExternCall call,
                 const StridesOf& strides_of = {});

}  // namespace kerf::lower
