#pragma once
// torch's type promotion over Kerf's dtypes.
#include <span>

#include "base/dtype.h"

namespace kerf::graph {

// Of two tensors of equal standing.
DType promote(DType a, DType b);

// Tensors with dimensions outrank 0-d tensors, and those outrank Python numbers: an operand of a lower rank
// decides only if it is of a higher kind (bool < integer < floating). A Python float stands for f32, an int
// for i64.
enum class Standing : uint8_t { tensor, zero_dim, number };
struct Promoted {
  DType dtype;
  Standing standing;
};
DType result_type(std::span<const Promoted> operands);

}  // namespace kerf::graph
