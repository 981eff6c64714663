// Pools over the last two or three dimensions, by windows: forward, a position of the result looks at the elements
// that it pools; backward, an element of the input looks at the windows that contain it, so that nothing is added
// up across positions.
#include "graph/import_call.h"
#include "sym/simplify.h"

namespace kerf::graph {

namespace {

using ops::ReduceOp;
using Dims = std::vector<int64_t>;

// Where the windows over one dimension are; see `window` in graph_ops.def.
struct Windows {
  sym::Expr count;   // of windows
  sym::Expr extent;  // elements of each
  sym::Expr scale, shift, divisor, dilation;
};

// Windows over the last dimensions of x.
Term window(const Term& x, const std::vector<Windows>& windows, double outside) {
  const Shape& in = x.type().shape;
  Shape shape(in.begin(), in.end() - static_cast<std::ptrdiff_t>(windows.size()));
  Shape scale, shift, divisor, dilation;
  for (const Windows& along : windows) {
    shape.push_back(along.count);
    scale.push_back(along.scale);
    shift.push_back(along.shift);
    divisor.push_back(along.divisor);
    dilation.push_back(along.dilation);
  }
  for (const Windows& along : windows) shape.push_back(along.extent);
  return {x.builder(), x.builder().node(Op::window, {x},
                                        {{Attr::shape, shape},
                                         {Attr::value, Scalar::of(x.dtype(), outside)},
                                         {Attr::scale, scale},
                                         {Attr::shift, shift},
                                         {Attr::divisor, divisor},
                                         {Attr::dilation, dilation}},
                                        {})[0]};
}

// The dimensions that `window` added to x.
Dims window_dims(const Term& windowed, size_t count) {
  Dims dims;
  for (size_t d = windowed.type().rank() - count; d < windowed.type().rank(); ++d)
    dims.push_back(static_cast<int64_t>(d));
  return dims;
}

// A term with dimensions of one element added until it has one for each entry of `dims`, at these places of
// `rank` dimensions.
Term placed(const Term& term, const std::vector<size_t>& dims, size_t rank) {
  Shape shape(rank, term.builder().context().constant(1));
  for (size_t i = 0; i < dims.size(); ++i) shape[dims[i]] = term.type().shape[i];
  return {term.builder(), term.builder().reshape(term, shape)};
}

// What windows over dimension `d` of `windows` see of start + step * position, against windows over all of them.
Term window_positions(const ImportCall& call, const std::vector<Windows>& windows, size_t d, sym::Expr size,
                      sym::Expr start, sym::Expr step, double outside) {
  Term positions = call.term(call.builder.iota(size, start, step, DType::i64));
  return placed(window(positions, {windows[d]}, outside), {d, windows.size() + d}, 2 * windows.size());
}

// The positions themselves, against windows over all dimensions or (`rank` of half of that) their counts.
Term own_positions(const ImportCall& call, sym::Expr size, size_t d, size_t rank) {
  return placed(call.term(call.builder.iota(size, call.constant(0), call.constant(1), DType::i64)), {d},
                rank);
}

// --- pools whose kernel, stride, padding and dilation are given

struct Kernel {
  Dims kernel, stride, padding, dilation;
  Shape in, out;  // sizes along the pooled dimensions
  size_t dims() const { return kernel.size(); }
};

// A list of one number stands for as many as there are dimensions; an absent or empty one for `if_empty`.
Dims per_dimension(const ImportCall& call, size_t argument, const Dims& if_empty) {
  Dims list;
  if (!call.is_none(argument))
    for (sym::Expr entry : call.sizes(argument)) list.push_back(entry.constant());
  if (list.empty()) return if_empty;
  if (list.size() == 1) list.resize(if_empty.size(), list[0]);
  return list;
}

Shape last_sizes(const TensorType& type, size_t count) {
  return {type.shape.end() - static_cast<std::ptrdiff_t>(count), type.shape.end()};
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

// --- max

constexpr double kNoPosition = 0x1p60;

// start + step * position, where position is the row-major one in the pooled dimensions.
Term plane_positions(const ImportCall& call, const Kernel& k, int64_t start, int64_t step) {
  sym::Expr elements = sym::product(call.context(), k.in);
  ValueId line = call.builder.iota(elements, call.constant(start), call.constant(step), DType::i64);
  return call.term(call.builder.reshape(line, k.in));
}

// The position of the largest element of each window, as eager's loop finds it: the first of equals, and the last
// NaN if there is one. Positions of NaN count down from -1, so that the least wins; an element outside, which may
// equal the largest of a window of infinities, comes last.
Term position_of_largest(const ImportCall& call, const Kernel& k, const Term& seen, const Term& largest) {
  std::vector<Windows> windows = pooled(call, k);
  Term key =
      where(equal(seen, largest), window(plane_positions(call, k, 0, 1), windows, kNoPosition), kNoPosition);
  if (is_floating(seen.dtype()))
    key = where(isnan(seen), window(plane_positions(call, k, -1, -1), windows, kNoPosition), key);
  Term first = reduce(ReduceOp::min, key, window_dims(seen, k.dims()), false);
  return where(less(first, 0.0), -1.0 - first, first);
}

}  // namespace

// self, kernel, stride, padding, dilation, ceil_mode: values, positions
Imported import_max_pool(const ImportCall& call) {
  Term x = call.tensor(0);
  Kernel k = read_kernel(call, 1, true, x.type(), call.result());
  if (x.dtype() == DType::b1) return decline("of bool");
  double least = convert(ops::identity(ReduceOp::max, x.dtype()), DType::f64).f;
  Term seen = window(x, pooled(call, k), least).computing();
  Dims dims = window_dims(seen, k.dims());
  Term largest = reduce(ReduceOp::max, seen, dims, true);
  Term values = call.term(call.builder.reshape(largest, call.result().shape)).in(x.dtype());
  return std::vector<ValueId>{values, position_of_largest(call, k, seen, largest)};
}

// grad, self, kernel, stride, padding, dilation, ceil_mode, indices
Imported import_max_pool_backward(const ImportCall& call) {
  Term grad = call.tensor(0), positions = call.tensor(7);
  Kernel k = read_kernel(call, 2, true, call.result(), grad.type());
  std::vector<Windows> windows = pooling(call, k);
  Term chosen = window(positions, windows, -1), share = window(grad, windows, 0).computing();
  Shape shape = k.in;
  shape.resize(2 * k.dims(), call.constant(1));
  Term own = call.term(call.builder.reshape(plane_positions(call, k, 0, 1), shape));
  return rounded(call, sum(where(equal(chosen, own), share, 0.0), window_dims(share, k.dims()), false));
}

// --- mean

namespace {

// How many elements a window along `d` counts, for each window.
Term counted(const ImportCall& call, const Kernel& k, size_t d, bool with_padding) {
  if (ends_within(call, k, d, with_padding ? k.padding[d] : 0) && (with_padding || k.padding[d] == 0))
    return call.term(call.builder.constant(Scalar::of_int(DType::i64, k.kernel[d])));
  Term start = call.term(
      call.builder.iota(k.out[d], call.constant(-k.padding[d]), call.constant(k.stride[d]), DType::i64));
  sym::Expr bound = with_padding ? k.in[d] + k.padding[d] : k.in[d];
  Term end = minimum(start + static_cast<double>(k.kernel[d]), call.term(call.builder.size_value(bound)));
  if (!with_padding) start = maximum(start, 0.0);
  return placed(end - start, {d}, k.dims());
}

// What the sum over a window is divided by: count_include_pad and divisor_override at `options`.
Term divisor(const ImportCall& call, const Kernel& k, size_t options) {
  if (!call.is_none(options + 1))
    return call.term(call.builder.constant(Scalar::of_int(DType::i64, call.integer(options + 1))));
  std::optional<Term> product;
  for (size_t d = 0; d < k.dims(); ++d) {
    Term along = counted(call, k, d, call.boolean(options));
    product = product ? *product * along : along;
  }
  return *product;
}

}  // namespace

// self, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
Imported import_avg_pool(const ImportCall& call) {
  Term x = call.tensor(0);
  if (!is_floating(x.dtype()) && x.dtype() != DType::i64) return decline("of {}", to_text(x.dtype()));
  Kernel k = read_kernel(call, 1, false, x.type(), call.result());
  Term seen = window(x, pooled(call, k), 0).computing();
  Term total = sum(seen, window_dims(seen, k.dims()), false);
  Term by = divisor(call, k, 5).in(total.dtype());
  return rounded(call, is_floating(x.dtype()) ? total / by : apply(ops::ScalarOp::trunc_div, total, by));
}

// grad, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
Imported import_avg_pool_backward(const ImportCall& call) {
  Term grad = call.tensor(0).computing();
  if (!is_floating(grad.dtype())) return decline("of {}", to_text(grad.dtype()));
  Kernel k = read_kernel(call, 2, false, call.result(), grad.type());
  std::vector<Windows> windows = pooling(call, k);
  Term share = window(grad / divisor(call, k, 6).in(grad.dtype()), windows, 0);
  for (size_t d = 0; d < k.dims(); ++d) {
    // As many windows contain each element as there are candidates.
    if (k.kernel[d] % k.stride[d] == 0) continue;
    Term start = window_positions(call, windows, d, k.out[d], call.constant(-k.padding[d]),
                                  call.constant(k.stride[d]), -kNoPosition);
    Term own = own_positions(call, k.in[d], d, 2 * k.dims());
    share = where(greater(start + static_cast<double>(k.kernel[d]), own), share, 0.0);
  }
  return rounded(call, sum(share, window_dims(share, k.dims()), false));
}

// --- mean over windows that divide a dimension into so many parts: part o of O goes from floor(o * I / O) to
// ceil((o + 1) * I / O) - 1

namespace {

struct Parts {
  sym::Expr in, out;
  sym::Expr each;  // elements of a part where all parts are equal, else invalid
};

std::vector<Parts> read_parts(const ImportCall& call, const TensorType& in, const TensorType& out) {
  auto dims = static_cast<size_t>(call.row.number);
  Shape sizes = last_sizes(in, dims), counts = last_sizes(out, dims);
  std::vector<Parts> parts;
  for (size_t d = 0; d < dims; ++d) {
    Parts part{sizes[d], counts[d], {}};
    if (sym::simplify(sym::mod(part.in, part.out), call.facts()).is_constant(0))
      part.each = sym::simplify(sym::floor_div(part.in, part.out), call.facts());
    parts.push_back(part);
  }
  return parts;
}

// Why the parts cannot be computed; empty if they can.
std::string obstacle(const ImportCall& call, const std::vector<Parts>& parts, DType dtype) {
  if (!is_floating(dtype)) return fmt::format("of {}", to_text(dtype));
  for (const Parts& along : parts)
    for (sym::Expr size : {along.in, along.out})
      if (!sym::provably_less(call.constant(0), size, call.facts())) return "a size that may be 0";
  return {};
}

// An upper bound of the length of intervals [floor(i * a / b), ceil((i + 1) * a / b)), least where it is known.
sym::Expr longest(sym::Expr a, sym::Expr b) {
  if (!a.is_constant() || !b.is_constant()) return sym::ceil_div(a, b) + 1;
  int64_t x = a.constant(), y = b.constant(), most = 0;
  for (int64_t i = 0; i < y; ++i) most = std::max(most, ((i + 1) * x + y - 1) / y - i * x / y);
  return a.context().constant(most);
}

// For each part, its elements; the last may be beyond it.
std::vector<Windows> elements_of(const ImportCall& call, const std::vector<Parts>& parts) {
  std::vector<Windows> windows;
  sym::Expr zero = call.constant(0), one = call.constant(1);
  for (const Parts& part : parts) {
    if (part.each.valid())
      windows.push_back({part.out, part.each, part.each, zero, one, one});
    else
      windows.push_back({part.out, longest(part.in, part.out), part.in, zero, part.out, one});
  }
  return windows;
}

// For each element, the parts that contain it, from the last down; there may be one too many.
std::vector<Windows> parts_with(const ImportCall& call, const std::vector<Parts>& parts) {
  std::vector<Windows> windows;
  sym::Expr zero = call.constant(0), one = call.constant(1), back = call.constant(-1);
  for (const Parts& part : parts) {
    if (part.each.valid())
      windows.push_back({part.in, one, one, zero, part.each, back});
    else
      windows.push_back({part.in, longest(part.out, part.in), part.out, part.out - 1, part.in, back});
  }
  return windows;
}

// Whether element i lies before the end of part o: i * O < (o + 1) * I.
Term before_end(const ImportCall& call, const Parts& part, const Term& element, const Term& index) {
  Term in = call.term(call.builder.size_value(part.in)), out = call.term(call.builder.size_value(part.out));
  return less(element * out, (index + 1.0) * in);
}

// Whether what windows of `elements_of` see along `d` belongs to their part.
Term belongs(const ImportCall& call, const std::vector<Parts>& parts, size_t d) {
  Term element = window_positions(call, elements_of(call, parts), d, parts[d].in, call.constant(0),
                                  call.constant(1), kNoPosition);
  element = where(less(element, kNoPosition), element, call.term(call.builder.size_value(parts[d].in)));
  return before_end(call, parts[d], element, own_positions(call, parts[d].out, d, 2 * parts.size()));
}

// The numbers of elements along `d`, for each part.
Term sizes_of(const ImportCall& call, const std::vector<Parts>& parts, size_t d, DType dtype) {
  if (parts[d].each.valid()) return call.term(call.builder.size_value(parts[d].each)).in(dtype);
  Term inside = belongs(call, parts, d).in(DType::i64);
  return sum(inside, window_dims(inside, parts.size()), false).in(dtype);
}

}  // namespace

// self, output_size
Imported import_adaptive_avg_pool(const ImportCall& call) {
  Term x = call.tensor(0);
  std::vector<Parts> parts = read_parts(call, x.type(), call.result());
  if (std::string reason = obstacle(call, parts, x.dtype()); !reason.empty()) return decline("{}", reason);
  Term seen = window(x, elements_of(call, parts), 0).computing();
  for (size_t d = 0; d < parts.size(); ++d)
    if (!parts[d].each.valid()) seen = where(belongs(call, parts, d), seen, 0.0);
  Term mean = sum(seen, window_dims(seen, parts.size()), false);
  for (size_t d = 0; d < parts.size(); ++d) mean = mean / sizes_of(call, parts, d, mean.dtype());
  return rounded(call, mean);
}

// grad, self
Imported import_adaptive_avg_pool_backward(const ImportCall& call) {
  Term grad = call.tensor(0).computing();
  std::vector<Parts> parts = read_parts(call, call.result(), grad.type());
  if (std::string reason = obstacle(call, parts, grad.dtype()); !reason.empty()) return decline("{}", reason);
  for (size_t d = 0; d < parts.size(); ++d) grad = grad / sizes_of(call, parts, d, grad.dtype());
  std::vector<Windows> windows = parts_with(call, parts);
  Term share = window(grad, windows, 0);
  for (size_t d = 0; d < parts.size(); ++d) {
    if (parts[d].each.valid()) continue;
    Term index = window_positions(call, windows, d, parts[d].out, call.constant(0), call.constant(1), -1);
    Term own = own_positions(call, parts[d].in, d, 2 * parts.size());
    share = where(before_end(call, parts[d], own, index), share, 0.0);
  }
  return rounded(call, sum(share, window_dims(share, parts.size()), false));
}

}  // namespace kerf::graph
