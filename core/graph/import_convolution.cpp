// Convolutions whose windows do not overlap: one tap, or patches side by side. They are products of matrices, pixels by
// channels. As such they take 0.45 to 0.95 of the time of the library's convolution, forward and backward, f32 and
// bf16 (two threads of a Xeon with AVX-512; images of 7 to 112 pixels a side, 16 to 2560 channels): no weight is
// brought into a blocked order in each call, and the result goes where it was planned. All others are library calls.
//
// Of these the gradient of the weight of a depthwise convolution (every channel by itself) is a kernel where a window is
// longer than 3: the library has no code of its own for it and pads every channel's weight to a block of 16 x 16. It then
// takes 2 to 30 times as long, and up to 32 MB (docs/decisions/0033).
#include "graph/import_call.h"
#include "graph/window.h"

namespace kerf::graph {

namespace {

using Shape = std::vector<sym::Expr>;

bool all_are(const Shape& sizes, int64_t value) {
  return std::ranges::all_of(sizes, [value](sym::Expr size) { return size.is_constant(value); });
}

// A convolution as a product: weight [out, in, height, width] of a window, images of [n, channels, height, width].
struct Patches {
  const ImportCall& call;
  TensorType input;
  TensorType weight;
  Shape output;  // of the convolution

  sym::Expr pixel_count() const { return output[0] * output[2] * output[3]; }
  sym::Expr patch_size() const { return weight.shape[1] * weight.shape[2] * weight.shape[3]; }

  // [n, c, h, w] as [n h w, c]
  Term pixels(const Term& image) const {
    ValueId rows = call.builder.permute(image, {0, 2, 3, 1});
    return call.term(call.builder.reshape(rows, {pixel_count(), image.type().shape[1]}));
  }

  Term image(const Term& pixels) const {
    sym::Expr channels = pixels.type().shape[1];
    ValueId rows = call.builder.reshape(pixels, {output[0], output[2], output[3], channels});
    return call.term(call.builder.permute(rows, {0, 3, 1, 2}));
  }

  bool is_one_tap() const { return weight.shape[2].is_constant(1) && weight.shape[3].is_constant(1); }

  // What the window sees at every place: [n h w, in height width].
  Term patches(const Term& image) const {
    if (is_one_tap()) return pixels(image);
    ValueId cut = call.builder.reshape(
        image, {output[0], input.shape[1], output[2], weight.shape[2], output[3], weight.shape[3]});
    ValueId rows = call.builder.permute(cut, {0, 2, 4, 1, 3, 5});
    return call.term(call.builder.reshape(rows, {pixel_count(), patch_size()}));
  }

  Term from_patches(const Term& patches) const {
    if (is_one_tap()) return image(patches);
    ValueId cut = call.builder.reshape(
        patches, {output[0], output[2], output[3], weight.shape[1], weight.shape[2], weight.shape[3]});
    return call.term(call.builder.reshape(call.builder.permute(cut, {0, 3, 1, 4, 2, 5}), input.shape));
  }

  Term matrix(const Term& weight_value) const {
    return call.term(call.builder.reshape(weight_value, {weight.shape[0], patch_size()}));
  }

  Term transposed(const Term& matrix) const { return call.term(call.builder.permute(matrix, {1, 0})); }

  Term product(const Term& a, const Term& b) const {
    return call.term(call.builder.node(Op::mm, {a, b}, {}, {})[0]);
  }
};

// `stride`: the position of the argument of that name; padding, dilation, transposed, output_padding and groups follow.
bool are_disjoint(const Patches& patches, size_t stride) {
  const ImportCall& call = patches.call;
  const TensorType &input = patches.input, &weight = patches.weight;
  if (input.rank() != 4 || (input.dtype != DType::f32 && input.dtype != DType::bf16)) return false;
  if (weight.dtype != input.dtype || call.boolean(stride + 3)) return false;
  if (!call.size(stride + 5).is_constant(1) || !all_are(call.sizes(stride + 1), 0)) return false;
  if (!patches.is_one_tap() && !all_are(call.sizes(stride + 2), 1)) return false;
  sym::Facts facts = call.facts();
  Shape step = call.sizes(stride);
  for (size_t d = 2; d < 4; ++d) {
    const sym::Expr& window = weight.shape[d];
    if (!window.is_constant() || !step.at(step.size() == 1 ? 0 : d - 2).is_constant(window.constant()))
      return false;
    if (!sym::provably_equal(patches.output[d] * window, input.shape[d], facts)) return false;
  }
  return true;
}

// The backward of a convolution of every channel by itself, with a call's arguments as import_convolution_backward has them.
struct DepthwiseBackward {
  const ImportCall& call;
  Term grad, input, weight;

  bool is_taken() const {
    constexpr int64_t kLibraryWindow = 3;
    const Shape& window = weight.type().shape;
    if (!call.mask(10).at(1) || input.type().rank() != 4 || call.boolean(7)) return false;
    for (const Term& term : {grad, input, weight})
      if (term.dtype() != DType::f32) return false;
    const bool is_depthwise = window[1].is_constant(1) && window[0].is_constant() &&
                              call.size(9) == window[0] && input.type().shape[1] == window[0];
    if (!is_depthwise || window[0].is_constant(1)) return false;
    if (!window[2].is_constant() || !window[3].is_constant()) return false;
    // At most this long, the library's own code for depthwise gradients takes less than a kernel's.
    return std::max(window[2].constant(), window[3].constant()) > kLibraryWindow;
  }

  // For every place of the window the sum of what it saw, times the gradient of what came of it: [n, c, h, w, height, width].
  // What lies outside of the image is not there: an infinite gradient meets no zero.
  Term weight_gradient() const {
    const Shape in = input.type().shape, out = grad.type().shape, taps = weight.type().shape;
    Shape step = call.sizes(4), padding = call.sizes(5), dilation = call.sizes(6);
    auto entry = [](const Shape& list, size_t d) { return list.at(list.size() == 1 ? 0 : d); };
    std::vector<Windows> windows;
    for (size_t d = 0; d < 2; ++d)
      windows.push_back({.count = out[2 + d],
                         .extent = taps[2 + d],
                         .scale = entry(step, d),
                         .shift = call.constant(0) - entry(padding, d),
                         .divisor = call.constant(1),
                         .dilation = entry(dilation, d)});
    Term everywhere = call.term(call.builder.full({in[2], in[3]}, Scalar::of_int(DType::b1, 1)));
    Term seen = window(input, windows, 0), is_inside = window(everywhere, windows, 0);
    Term products = where(is_inside, seen * placed(grad, {0, 1, 2, 3}, 6), 0.0);
    return call.term(call.builder.reshape(sum(products, {0, 2, 3}, false), taps));
  }

  // The library computes that of the weight, too, where it is asked for that of the bias.
  ValueId input_gradient() const {
    Call rest = call.call;
    rest.arguments[10].value = ArgumentList{{true}, {false}, {false}};
    return import_call(call.builder, rest)[0];
  }

  std::vector<ValueId> gradients() const {
    const std::vector<int64_t> wanted = call.mask(10);
    return {wanted[0] ? input_gradient() : call.zeros(0), weight_gradient(),
            wanted[2] ? ValueId(sum(grad, {0, 2, 3}, false)) : call.zeros(2)};
  }
};

}  // namespace

// input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
Imported import_convolution(const ImportCall& call) {
  Term input = call.tensor(0), weight = call.tensor(1);
  Patches patches{call, input.type(), weight.type(), call.result().shape};
  if (!are_disjoint(patches, 3)) return decline("windows that overlap or leave gaps");
  Term a = patches.patches(input), b = patches.transposed(patches.matrix(weight));
  if (call.is_none(2)) return one(patches.image(patches.product(a, b)));
  Term bias = call.tensor(2);
  if (bias.dtype() != input.dtype()) return decline("a bias of another dtype");
  // A half is rounded once, after the bias; in f32 the bias is added with whatever else is done to the result.
  if (input.dtype() != DType::f32) {
    ValueId sum = call.builder.node(Op::addmm, {bias, a, b}, {{Attr::alpha, 1.0}, {Attr::beta, 1.0}}, {})[0];
    return one(patches.image(call.term(sum)));
  }
  ValueId channels =
      call.builder.reshape(bias, {patches.weight.shape[0], call.constant(1), call.constant(1)});
  return one(patches.image(patches.product(a, b)) + call.term(channels));
}

// grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
Imported import_convolution_backward(const ImportCall& call) {
  Term grad = call.tensor(0), input = call.tensor(1), weight = call.tensor(2);
  Patches patches{call, input.type(), weight.type(), grad.type().shape};
  if (grad.dtype() != input.dtype() || !are_disjoint(patches, 4)) {
    DepthwiseBackward depthwise{call, grad, input, weight};
    if (depthwise.is_taken()) return depthwise.gradients();
    return decline("windows that overlap or leave gaps");
  }
  Term rows = patches.pixels(grad);
  std::vector<int64_t> wanted = call.mask(10);
  std::vector<ValueId> results;
  for (size_t i = 0; i < 3; ++i) {
    if (!wanted.at(i))
      results.push_back(call.zeros(i));
    else if (i == 0)
      results.push_back(patches.from_patches(patches.product(rows, patches.matrix(weight))));
    else if (i == 1)
      results.push_back(call.builder.reshape(
          patches.product(patches.transposed(rows), patches.patches(input)), patches.weight.shape));
    else
      results.push_back(sum(grad.computing(), {0, 2, 3}, false).in(grad.dtype()));
  }
  return results;
}

}  // namespace kerf::graph
