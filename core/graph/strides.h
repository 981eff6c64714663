#pragma once
// The memory orders of tensors: row-major, and channels last ([n, c, h, w] with c innermost; of 3 to 5 dimensions).
#include <span>
#include <vector>

#include "sym/expr.h"
#include "sym/facts.h"

namespace kerf::graph {

std::vector<sym::Expr> contiguous_strides(sym::Context& context, std::span<const sym::Expr> shape);
std::vector<sym::Expr> channels_last_strides(sym::Context& context, std::span<const sym::Expr> shape);

// Whether both provably address the same elements: strides of dimensions of one element do not count, and without elements
// none does.
bool same_strides(std::span<const sym::Expr> shape, std::span<const sym::Expr> a,
                  std::span<const sym::Expr> b, const sym::Facts& facts);

// Whether these strides are channels last and not row-major as well.
bool is_channels_last(std::span<const sym::Expr> shape, std::span<const sym::Expr> strides,
                      const sym::Facts& facts);

}  // namespace kerf::graph
