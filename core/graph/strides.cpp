#include "graph/strides.h"

#include <algorithm>

#include "base/check.h"
#include "sym/simplify.h"

namespace kerf::graph {

std::vector<sym::Expr> contiguous_strides(sym::Context& context, std::span<const sym::Expr> shape) {
  std::vector<sym::Expr> strides(shape.size());
  sym::Expr stride = context.constant(1);
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    // As torch counts: an empty dimension does not make the outer strides zero.
    stride = shape[i].is_constant(0) ? stride : stride * shape[i];
  }
  return strides;
}

std::vector<sym::Expr> channels_last_strides(sym::Context& context, std::span<const sym::Expr> shape) {
  CHECK(shape.size() >= 3 && shape.size() <= 5, "channels last is no order of {} dimensions", shape.size());
  std::vector<sym::Expr> order = {shape[0]};
  order.insert(order.end(), shape.begin() + 2, shape.end());
  order.push_back(shape[1]);
  std::vector<sym::Expr> strides = contiguous_strides(context, order);
  strides.insert(strides.begin() + 1, strides.back());
  strides.pop_back();
  return strides;
}

bool same_strides(std::span<const sym::Expr> shape, std::span<const sym::Expr> a,
                  std::span<const sym::Expr> b, const sym::Facts& facts) {
  CHECK(a.size() == shape.size() && b.size() == shape.size(), "strides of ranks {} and {} for a shape of {}",
        a.size(), b.size(), shape.size());
  if (std::ranges::any_of(shape, [](sym::Expr extent) { return extent.is_constant(0); })) return true;
  for (size_t d = 0; d < shape.size(); ++d)
    if (!shape[d].is_constant(1) && !sym::provably_equal(a[d], b[d], facts)) return false;
  return true;
}

bool is_channels_last(std::span<const sym::Expr> shape, std::span<const sym::Expr> strides,
                      const sym::Facts& facts) {
  if (shape.size() < 3 || shape.size() > 5) return false;
  sym::Context& context = shape[0].context();
  return same_strides(shape, strides, channels_last_strides(context, shape), facts) &&
         !same_strides(shape, strides, contiguous_strides(context, shape), facts);
}

}  // namespace kerf::graph
