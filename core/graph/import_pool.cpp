// Pools of a given kernel over the last two or three dimensions, by windows: forward, a position of the result looks at the elements
// that it pools; backward, an element of the input looks at the windows that contain it, so that nothing is added
// up across positions.
#include "graph/import_call.h"
#include "graph/largest.h"
#include "sym/simplify.h"

namespace kerf::graph {

namespace {

using ops::ReduceOp;
using Dims = std::vector<int64_t>;

struct Kernel {
  Dims kernel, stride, padding, dilation;
  Shape in, out;  // sizes along the pooled dimensions
  size_t dims() const { return kernel.size(); }
};

// A list of one number stands for as many as there are dimensions; an absent or empty one for `if_empty`.
Dims per_dimension(const ImportCall& call, size_t argument, const Dims& if_empty) {
  Dims list;
  if (!call.is_none(argument))
    for (sym::Expr entry : call.sizes(argument)) list.push_back(known(entry));
  if (list.empty()) return if_empty;
  if (list.size() == 1) list.resize(if_empty.size(), list[0]);
  return list;
}

// kernel, stride, padding from argument `first` on; dilation after them if `dilated`.
Kernel read_kernel(const ImportCall& call, size_t first, bool dilated, const TensorType& in,
                   const TensorType& out) {
  auto dims = static_cast<size_t>(call.row.number);
  Kernel k;
  k.kernel = per_dimension(call, first, Dims(dims, 1));
  k.stride = per_dimension(call, first + 1, k.kernel);
  k.padding = per_dimension(call, first + 2, Dims(dims, 0));
  k.dilation = dilated ? per_dimension(call, first + 3, Dims(dims, 1)) : Dims(dims, 1);
  k.in = last_sizes(in, dims);
  k.out = last_sizes(out, dims);
  return k;
}

// For each position of the result, the elements that it pools.
std::vector<Windows> pooled(const ImportCall& call, const Kernel& k) {
  std::vector<Windows> windows;
  for (size_t d = 0; d < k.dims(); ++d)
    windows.push_back({.count = k.out[d],
                       .extent = call.constant(k.kernel[d]),
                       .scale = call.constant(k.stride[d]),
                       .shift = call.constant(-k.padding[d]),
                       .divisor = call.constant(1),
                       .dilation = call.constant(k.dilation[d])});
  return windows;
}

// For each element of the input, the positions whose windows may contain it: from the last that begins at or
// before it, as many as a window's reach allows.
std::vector<Windows> pooling(const ImportCall& call, const Kernel& k) {
  std::vector<Windows> windows;
  for (size_t d = 0; d < k.dims(); ++d) {
    int64_t reach = (k.kernel[d] - 1) * k.dilation[d] + 1;
    windows.push_back({.count = k.in[d],
                       .extent = call.constant((reach + k.stride[d] - 1) / k.stride[d]),
                       .scale = call.constant(1),
                       .shift = call.constant(k.padding[d]),
                       .divisor = call.constant(k.stride[d]),
                       .dilation = call.constant(-1)});
  }
  return windows;
}

// Whether the last window along `d` provably ends within `size` + padding.
bool ends_within(const ImportCall& call, const Kernel& k, size_t d, int64_t padding) {
  sym::Expr last = (k.out[d] - 1) * k.stride[d] - k.padding[d] + (k.kernel[d] - 1) * k.dilation[d];
  return sym::provably_less(last, k.in[d] + padding, call.facts());
}

}  // namespace

// --- max

// self, kernel, stride, padding, dilation, ceil_mode: values, positions
Imported import_max_pool(const ImportCall& call) {
  Term x = call.tensor(0);
  Kernel k = read_kernel(call, 1, true, x.type(), call.result());
  if (x.dtype() == DType::b1) return decline("of bool");
  double least = convert(ops::identity(ReduceOp::max, x.dtype()), DType::f64).f;
  std::vector<Windows> windows = pooled(call, k);
  Largest found = largest_of(window(x, windows, least).computing(), windows, k.in);
  return std::vector<ValueId>{found.values.in(x.dtype()), found.positions};
}

// grad, self, kernel, stride, padding, dilation, ceil_mode, indices
Imported import_max_pool_backward(const ImportCall& call) {
  Term grad = call.tensor(0), positions = call.tensor(7);
  Kernel k = read_kernel(call, 2, true, call.result(), grad.type());
  return rounded(call, gradient_of_largest(grad, positions, pooling(call, k), k.in));
}

// --- mean

namespace {

// Whether all windows along `d` count as many elements.
bool counts_all(const ImportCall& call, const Kernel& k, size_t d, bool with_padding) {
  return ends_within(call, k, d, with_padding ? k.padding[d] : 0) && (with_padding || k.padding[d] == 0);
}

// How many elements a window along `d` counts, for each window.
Term counted(const ImportCall& call, const Kernel& k, size_t d, bool with_padding) {
  Term start = call.term(
      call.builder.iota(k.out[d], call.constant(-k.padding[d]), call.constant(k.stride[d]), DType::i64));
  sym::Expr bound = with_padding ? k.in[d] + k.padding[d] : k.in[d];
  Term end = minimum(start + static_cast<double>(k.kernel[d]), call.term(call.builder.size_value(bound)));
  if (!with_padding) start = maximum(start, 0.0);
  return placed(end - start, {d}, k.dims());
}

// What the sums over windows are divided by: a number for all, times a number for each window where they differ.
struct Divisor {
  int64_t number = 1;
  std::optional<Term> each;  // i64
};

// count_include_pad and divisor_override at `options`.
Divisor divisor(const ImportCall& call, const Kernel& k, size_t options) {
  Divisor by;
  if (!call.is_none(options + 1)) return {.number = call.integer(options + 1), .each = {}};
  for (size_t d = 0; d < k.dims(); ++d) {
    if (counts_all(call, k, d, call.boolean(options))) {
      by.number *= k.kernel[d];
      continue;
    }
    Term along = counted(call, k, d, call.boolean(options));
    by.each = by.each ? *by.each * along : along;
  }
  return by;
}

Term divided(const ImportCall& call, const Term& total, const Divisor& by) {
  Term all = call.term(call.builder.constant(Scalar::of_int(total.dtype(), by.number)));
  if (by.each) {
    Term each = by.each->in(total.dtype());
    all = by.number == 1 ? each : each * static_cast<double>(by.number);
  }
  return is_floating(total.dtype()) ? total / all : apply(ops::ScalarOp::trunc_div, total, all);
}

}  // namespace

// self, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
Imported import_avg_pool(const ImportCall& call) {
  Term x = call.tensor(0);
  if (!is_floating(x.dtype()) && x.dtype() != DType::i64) return decline("of {}", to_text(x.dtype()));
  Kernel k = read_kernel(call, 1, false, x.type(), call.result());
  Term seen = window(x, pooled(call, k), 0).computing();
  Term total = sum(seen, window_dims(seen, k.dims()), false);
  return rounded(call, divided(call, total, divisor(call, k, 5)));
}

// grad, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
Imported import_avg_pool_backward(const ImportCall& call) {
  Term grad = call.tensor(0).computing();
  if (!is_floating(grad.dtype())) return decline("of {}", to_text(grad.dtype()));
  Kernel k = read_kernel(call, 2, false, call.result(), grad.type());
  std::vector<Windows> windows = pooling(call, k);
  Divisor by = divisor(call, k, 6);
  // A number divides the sum; what differs between windows, the gradients.
  Term share = window(by.each ? divided(call, grad, by) : grad, windows, 0);
  for (size_t d = 0; d < k.dims(); ++d) {
    // As many windows contain each element as there are candidates.
    if (k.kernel[d] % k.stride[d] == 0) continue;
    Term start = window_positions(call.builder, windows, d, k.out[d], call.constant(-k.padding[d]),
                                  call.constant(k.stride[d]), -kNoPosition);
    Term own = own_positions(call.builder, k.in[d], d, 2 * k.dims());
    share = where(greater(start + static_cast<double>(k.kernel[d]), own), share, 0.0);
  }
  Term total = sum(share, window_dims(share, k.dims()), false);
  return rounded(call, by.each ? total : divided(call, total, by));
}

}  // namespace kerf::graph
