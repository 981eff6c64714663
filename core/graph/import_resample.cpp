// Results that read their operand at positions computed from their own: resampling to the nearest element, and padding
// by reflection and by the nearest element. Gradients are summed where the results read.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/import_call.h"
#include "graph/window.h"
#include "sym/simplify.h"

namespace kerf::graph {

namespace {

using ops::ScalarOp;

// One i64 index list for each of the last dimensions, broadcast against each other.
Indices indices_of(const std::vector<Term>& lists, size_t rank) {
  Indices indices;
  for (size_t d = 0; d < lists.size(); ++d) {
    indices.tensors.push_back(placed(lists[d], {d}, lists.size()));
    indices.dims.push_back(static_cast<int64_t>(rank - lists.size() + d));
  }
  indices.at = indices.dims.front();
  return indices;
}

Imported read_at(const ImportCall& call, const std::vector<Term>& lists) {
  Term x = call.tensor(0);
  Indices at = indices_of(lists, x.type().rank());
  std::vector<ValueId> operands = {x};
  operands.insert(operands.end(), at.tensors.begin(), at.tensors.end());
  return one(call.builder.node(Op::index, std::move(operands),
                               {{Attr::dims, at.dims}, {Attr::wrap, false}, {Attr::dim, at.at}}, {})[0]);
}

Imported summed_at(const ImportCall& call, const std::vector<Term>& lists) {
  Term grad = call.tensor(0).computing();
  Indices at = indices_of(lists, grad.type().rank());
  ValueId zeros = call.builder.full(call.result().shape, Scalar::of(grad.dtype(), 0));
  std::vector<ValueId> operands = {zeros, grad};
  operands.insert(operands.end(), at.tensors.begin(), at.tensors.end());
  return rounded(
      call, call.term(call.builder.node(
                Op::index_put, std::move(operands),
                {{Attr::dims, at.dims}, {Attr::wrap, false}, {Attr::dim, at.at}, {Attr::accumulate, true}},
                {})[0]));
}

Term size_term(const ImportCall& call, sym::Expr size) { return call.term(call.builder.size_value(size)); }

Term positions(const ImportCall& call, sym::Expr size, sym::Expr start) {
  return call.term(call.builder.iota(size, start, call.constant(1), DType::i64));
}

// --- nearest

// One dimension that is resampled. Output o reads input floor(o * scale), computed in f32 as eager's kernels do; the
// exact form reads floor((o + 0.5) * scale).
struct Resampled {
  sym::Expr in, out;
  std::optional<double> factor;  // the caller's, where it is positive
  bool exact;
  bool halves;  // whatever the factor is, equal sizes are copied and doubled ones read floor(o / 2)

  bool is_constant() const { return in.is_constant() && out.is_constant(); }
};

// Which of eager's forward kernels copy and halve: that of planes, and of volumes with more than 3 channels last.
// All backward kernels do.
bool halves_forward(const ImportCall& call, const TensorType& in) {
  if (call.row.number == 3)
    return sym::provably_less(call.constant(3), in.shape[1], call.facts()) &&
           is_channels_last(in.shape, in.strides, call.facts());
  return call.row.number == 2;
}

// `flag` 1: the exact form; the factors begin at argument `factors`.
std::vector<Resampled> read_resampled(const ImportCall& call, size_t factors, const TensorType& in,
                                      const TensorType& out, bool halves) {
  auto dims = static_cast<size_t>(call.row.number);
  Shape sizes = last_sizes(in, dims), counts = last_sizes(out, dims);
  std::vector<Resampled> resampled;
  for (size_t d = 0; d < dims; ++d) {
    std::optional<double> factor;
    if (!call.is_none(factors + d) && call.number(factors + d) > 0) factor = call.number(factors + d);
    resampled.push_back({sizes[d], counts[d], factor, call.row.flag == 1, halves && call.row.flag != 1});
  }
  return resampled;
}

// What output o reads, all sizes being known.
int64_t source_of(const Resampled& along, int64_t o) {
  int64_t in = along.in.constant(), out = along.out.constant();
  if (along.halves && in == out) return o;
  if (along.halves && out == 2 * in) return o / 2;
  float scale = along.factor ? static_cast<float>(1.0 / *along.factor)
                             : static_cast<float>(in) / static_cast<float>(out);
  float at = along.exact ? static_cast<float>((static_cast<double>(o) + 0.5) * static_cast<double>(scale))
                         : static_cast<float>(o) * scale;
  return std::min(static_cast<int64_t>(std::floor(at)), in - 1);
}

// The same as a list of indices, whatever the sizes are.
Term sources(const ImportCall& call, const Resampled& along) {
  Term o = positions(call, along.out, call.constant(0));
  Term in = size_term(call, along.in), out = size_term(call, along.out);
  Term scale = along.factor ? call.term(call.builder.constant(Scalar::of(DType::f32, 1 / *along.factor)))
                            : in.in(DType::f32) / out.in(DType::f32);
  Term at =
      along.exact ? ((o.in(DType::f64) + 0.5) * scale.in(DType::f64)).in(DType::f32) : o.in(DType::f32)*scale;
  Term source = minimum(apply(ScalarOp::floor, at).in(DType::i64), in - 1.0);
  if (!along.halves) return source;
  source = where(equal(out, in + in), apply(ScalarOp::shift_right, o, 1.0), source);
  return where(equal(out, in), o, source);
}

// A ratio of whole numbers that gives every source: floor((a * o + b) / c).
struct Ratio {
  int64_t a, b, c;
};

std::optional<Ratio> ratio_of(const Resampled& along) {
  if (!along.is_constant()) return std::nullopt;
  int64_t in = along.in.constant(), out = along.out.constant();
  if (in < 1 || out < 1) return std::nullopt;
  int64_t common = std::gcd(in, out);
  Ratio ratio = along.exact ? Ratio{2 * in / common, in / common, 2 * out / common}
                            : Ratio{in / common, 0, out / common};
  for (int64_t o = 0; o < out; ++o)
    if (source_of(along, o) != (ratio.a * o + ratio.b) / ratio.c) return std::nullopt;
  return ratio;
}

// Of all dimensions, or of none.
std::optional<std::vector<Ratio>> ratios_of(const std::vector<Resampled>& resampled) {
  std::vector<Ratio> ratios;
  for (const Resampled& along : resampled) {
    std::optional<Ratio> ratio = ratio_of(along);
    if (!ratio) return std::nullopt;
    ratios.push_back(*ratio);
  }
  return ratios;
}

// The outputs that read one input are neighbours; how many at most.
int64_t most_readers(const Resampled& along) {
  std::vector<int64_t> readers(static_cast<size_t>(along.in.constant()));
  for (int64_t o = 0; o < along.out.constant(); ++o) ++readers[static_cast<size_t>(source_of(along, o))];
  return *std::ranges::max_element(readers);
}

// Windows of one element: what each output reads.
std::vector<Windows> windows_read(const ImportCall& call, const std::vector<Resampled>& resampled,
                                  const std::vector<Ratio>& ratios) {
  std::vector<Windows> windows;
  for (size_t d = 0; d < ratios.size(); ++d)
    windows.push_back({resampled[d].out, call.constant(1), call.constant(ratios[d].a),
                       call.constant(ratios[d].b), call.constant(ratios[d].c), call.constant(1)});
  return windows;
}

// For each input, its readers, from the last down: the last o with a * o + b < c * (i + 1).
std::vector<Windows> windows_of_readers(const ImportCall& call, const std::vector<Resampled>& resampled,
                                        const std::vector<Ratio>& ratios) {
  std::vector<Windows> windows;
  for (size_t d = 0; d < ratios.size(); ++d)
    windows.push_back({resampled[d].in, call.constant(most_readers(resampled[d])), call.constant(ratios[d].c),
                       call.constant(ratios[d].c - 1 - ratios[d].b), call.constant(ratios[d].a),
                       call.constant(-1)});
  return windows;
}

}  // namespace

// self, output_size, scales...
Imported import_nearest(const ImportCall& call) {
  Term x = call.tensor(0);
  std::vector<Resampled> resampled =
      read_resampled(call, 2, x.type(), call.result(), halves_forward(call, x.type()));
  if (std::optional<std::vector<Ratio>> ratios = ratios_of(resampled)) {
    Term read = window(x, windows_read(call, resampled, *ratios), 0);
    return one(call.builder.reshape(read, call.result().shape));
  }
  std::vector<Term> lists;
  for (const Resampled& along : resampled) lists.push_back(sources(call, along));
  return read_at(call, lists);
}

// grad, output_size, input_size, scales...
Imported import_nearest_backward(const ImportCall& call) {
  Term grad = call.tensor(0).computing();
  std::vector<Resampled> resampled = read_resampled(call, 3, call.result(), grad.type(), true);
  std::optional<std::vector<Ratio>> ratios = ratios_of(resampled);
  if (!ratios) {
    std::vector<Term> lists;
    for (const Resampled& along : resampled) lists.push_back(sources(call, along));
    return summed_at(call, lists);
  }
  std::vector<Windows> windows = windows_of_readers(call, resampled, *ratios);
  Term share = window(grad, windows, 0);
  for (size_t d = 0; d < ratios->size(); ++d) {
    auto [a, b, c] = (*ratios)[d];
    // Every input has as many readers.
    if (c % a == 0 && b < a) continue;
    Term numerator = window_positions(call.builder, windows, d, resampled[d].out, call.constant(b),
                                      call.constant(a), -kNoPosition);
    Term own = own_positions(call.builder, resampled[d].in, d, 2 * windows.size());
    share = where(greater_equal(numerator, own * static_cast<double>(c)), share, 0.0);
  }
  return rounded(call, sum(share, window_dims(share, windows.size()), false));
}

// --- padding; pairs of low and high from the last dimension on. A negative one cuts.

namespace {

// For each of the last dimensions, where results read: `reflect` turns back at the border elements, else the border
// is repeated.
std::vector<Term> padded_positions(const ImportCall& call, size_t padding, const TensorType& in,
                                   const TensorType& out) {
  bool reflect = call.row.flag == 1;
  std::vector<sym::Expr> pads = call.sizes(padding);
  size_t dims = pads.size() / 2;
  Shape sizes = last_sizes(in, dims), counts = last_sizes(out, dims);
  std::vector<Term> lists;
  for (size_t d = 0; d < dims; ++d) {
    Term at = positions(call, counts[d], sym::neg(pads[2 * (dims - 1 - d)]));
    Term last = size_term(call, sizes[d] - 1);
    if (reflect)
      lists.push_back(last - abs(last - abs(at)));
    else
      lists.push_back(minimum(maximum(at, 0.0), last));
  }
  return lists;
}

}  // namespace

// self, padding
Imported import_border_pad(const ImportCall& call) {
  return read_at(call, padded_positions(call, 1, call.tensor(0).type(), call.result()));
}

// grad, self, padding
Imported import_border_pad_backward(const ImportCall& call) {
  return summed_at(call, padded_positions(call, 2, call.result(), call.tensor(0).type()));
}

}  // namespace kerf::graph
