#pragma once
// The memory order of the values that kernels and convolutions write.
//
// The library's convolutions are up to twice as fast with channels last (1-d to 3-d images: 4-d tensors only here), and a
// network between two convolutions is pointwise or folds whole planes, which is equally fast in either order. So every
// convolution that can runs channels last, and what is computed from a channels-last value stays channels last: a
// network's image is converted once, where it enters. A value's order is decided where it is placed, from where its
// operands are; nothing else depends on it, as all readers go through places.
#include <vector>

#include "lower/lowering.h"

namespace kerf::lower {

// Whether these are the strides of images (of 4 dimensions) that are channels last and not row-major as well.
bool is_channels_last(const Lowering& lowering, const std::vector<sym::Expr>& shape,
                      const std::vector<sym::Expr>& strides);

// Strides of a new buffer for the value: channels last if an operand of its node is, one that is not merely repeated
// (attention's bias of [1, heads, n, n] may happen to lie like an image), else row-major.
std::vector<sym::Expr> chosen_strides(const Lowering& lowering, graph::ValueId value);

// For a convolution, or the backward of one, that is to run channels last: how many of its first arguments are images.
// 0 for every other call.
size_t channels_last_images(const Lowering& lowering, const graph::Node& node);

}  // namespace kerf::lower
