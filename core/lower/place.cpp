#include "lower/place.h"

#include <algorithm>

#include "graph/build.h"
#include "sym/simplify.h"

namespace kerf::lower {

namespace {

bool has_no_elements(std::span<const sym::Expr> shape) {
  return std::any_of(shape.begin(), shape.end(), [](sym::Expr extent) { return extent.is_constant(0); });
}

}  // namespace

sym::Expr linear_index(sym::Context& context, std::span<const sym::Expr> position,
                       std::span<const sym::Expr> strides) {
  CHECK(position.size() == strides.size(), "a position of rank {} for {} strides", position.size(),
        strides.size());
  sym::Expr index = context.constant(0);
  for (size_t d = 0; d < position.size(); ++d) index = index + position[d] * strides[d];
  return index;
}

sym::Expr storage_extent(sym::Context& context, std::span<const sym::Expr> shape,
                         std::span<const sym::Expr> strides, const sym::Facts& facts) {
  if (has_no_elements(shape)) return context.constant(0);
  if (same_strides(shape, strides, graph::contiguous_strides(context, shape), facts))
    return sym::product(context, shape);
  sym::Expr last = context.constant(0);
  for (size_t d = 0; d < shape.size(); ++d) last = last + (shape[d] - 1) * strides[d];
  return sym::simplify(sym::max(last + 1, context.constant(0)), facts);
}

}  // namespace kerf::lower
