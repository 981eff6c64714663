// Windows as columns of their own, and back: im2col (F.unfold), col2im (F.fold) and the gradient of Tensor.unfold. Going back,
// windows that overlap are summed: taps that are a stride apart fall on the same elements, moved by one window, so that there
// is one shifted copy to add for each such group of taps.
#include <algorithm>
#include <numeric>

#include "graph/import_call.h"
#include "graph/window.h"
#include "sym/simplify.h"

namespace kerf::graph {

namespace {

// Windows over one dimension of `in` elements: window o has tap k at stride * o + dilation * k - padding.
struct Taps {
  sym::Expr in, windows;
  int64_t taps, stride, dilation, padding;

  // Groups of `stride` neighbouring taps; with a stride of 1 a tap is a group.
  int64_t groups() const { return (taps + stride - 1) / stride; }
};

std::vector<int64_t> numbers(const ImportCall& call, size_t argument, size_t count) {
  std::vector<int64_t> list;
  for (sym::Expr entry : call.sizes(argument)) list.push_back(known(entry));
  if (list.size() == 1) list.resize(count, list[0]);
  return list;
}

// kernel, dilation, padding, stride from argument `first` on, over the last two dimensions, of sizes `in`.
std::vector<Taps> read_taps(const ImportCall& call, size_t first, const Shape& in) {
  std::vector<int64_t> kernel = numbers(call, first, 2), dilation = numbers(call, first + 1, 2);
  std::vector<int64_t> padding = numbers(call, first + 2, 2), stride = numbers(call, first + 3, 2);
  std::vector<Taps> taps;
  for (size_t d = 0; d < in.size(); ++d) {
    int64_t reach = dilation[d] * (kernel[d] - 1) + 1;
    sym::Expr windows =
        sym::simplify(sym::floor_div(in[d] + (2 * padding[d] - reach), stride[d]) + 1, call.facts());
    taps.push_back({in[d], windows, kernel[d], stride[d], dilation[d], padding[d]});
  }
  return taps;
}

Term padded(const Term& x, const Shape& low, const Shape& high) {
  auto is_nothing = [](sym::Expr count) { return count.is_constant(0); };
  if (std::ranges::all_of(low, is_nothing) && std::ranges::all_of(high, is_nothing)) return x;
  return {x.builder(),
          x.builder().node(Op::pad, {x},
                           {{Attr::value, Scalar::of(x.dtype(), 0)}, {Attr::low, low}, {Attr::high, high}},
                           {})[0]};
}

// [.., taps.., windows..] as [.., (group, tap of the group).., windows..]: missing taps are zero.
Term in_groups(const ImportCall& call, const Term& x, const std::vector<Taps>& along) {
  size_t lead = x.type().rank() - 2 * along.size();
  Shape zeros(x.type().rank(), call.constant(0)), high = zeros;
  Shape shape(x.type().shape.begin(), x.type().shape.begin() + static_cast<std::ptrdiff_t>(lead));
  for (size_t d = 0; d < along.size(); ++d) {
    int64_t missing = along[d].groups() * along[d].stride - along[d].taps;
    high[lead + d] = call.constant(missing);
    shape.insert(shape.end(), {call.constant(along[d].groups()), call.constant(along[d].stride)});
  }
  for (const Taps& taps : along) shape.push_back(taps.windows);
  return call.term(call.builder.reshape(padded(x, zeros, high), shape));
}

// One group of taps of each dimension, at the windows that begin at each multiple of the stride, padding included:
// [.., taps of a group.., multiples..].
Term of_group(const ImportCall& call, const Term& grouped, const std::vector<Taps>& along,
              const std::vector<int64_t>& group) {
  size_t dims = along.size(), lead = grouped.type().rank() - 3 * dims;
  ValueId picked = grouped;
  Shape shape(grouped.type().shape.begin(), grouped.type().shape.begin() + static_cast<std::ptrdiff_t>(lead));
  for (size_t d = 0; d < dims; ++d) {
    auto at = static_cast<int64_t>(lead + 2 * d);
    picked = call.builder.slice(picked, at, call.constant(group[d]), call.constant(1), 1);
    shape.push_back(call.constant(along[d].stride));
  }
  for (const Taps& taps : along) shape.push_back(taps.windows);
  Shape low(shape.size(), call.constant(0)), high = low;
  for (size_t d = 0; d < dims; ++d) {
    int64_t step = along[d].stride == 1 ? along[d].dilation : 1;
    low[lead + dims + d] = call.constant(group[d] * step);
    high[lead + dims + d] = call.constant((along[d].groups() - 1 - group[d]) * step);
  }
  return padded(call.term(call.builder.reshape(picked, shape)), low, high);
}

// [.., taps of a group.., multiples..] as [.., in..].
Term in_order(const ImportCall& call, const Term& x, const std::vector<Taps>& along) {
  size_t dims = along.size(), lead = x.type().rank() - 2 * dims;
  std::vector<int64_t> order(lead);
  std::iota(order.begin(), order.end(), 0);
  Shape shape(x.type().shape.begin(), x.type().shape.begin() + static_cast<std::ptrdiff_t>(lead));
  Shape low(lead, call.constant(0)), high = low;
  for (size_t d = 0; d < dims; ++d) {
    order.insert(order.end(), {static_cast<int64_t>(lead + dims + d), static_cast<int64_t>(lead + d)});
    sym::Expr covered = x.type().shape[lead + dims + d] * along[d].stride;
    shape.push_back(covered);
    low.push_back(call.constant(-along[d].padding));
    high.push_back(sym::simplify(along[d].in + along[d].padding - covered, call.facts()));
  }
  return padded(call.term(call.builder.reshape(call.builder.permute(x, order), shape)), low, high);
}

// The sums of what windows give to each element: [.., taps.., windows..] to [.., in..].
Result<Term> summed(const ImportCall& call, const Term& x, const std::vector<Taps>& along) {
  constexpr int64_t kMostTerms = 64;
  int64_t terms = 1;
  for (const Taps& taps : along) {
    if (taps.stride > 1 && taps.dilation > 1) return decline("a stride with a dilation");
    terms *= taps.groups();
  }
  if (terms > kMostTerms) return decline("{} windows over an element", terms);
  Term grouped = in_groups(call, x.computing(), along);
  std::vector<int64_t> group(along.size(), 0);
  Term total(0.0);  // begins at zero as eager's: that of -0.0 is 0.0
  for (int64_t i = 0; i < terms; ++i) {
    int64_t rest = i;
    for (size_t d = 0; d < along.size(); ++d) {
      group[d] = rest % along[d].groups();
      rest /= along[d].groups();
    }
    total = total + of_group(call, grouped, along, group);
  }
  return in_order(call, total, along);
}

}  // namespace

// self, kernel, dilation, padding, stride
Imported import_im2col(const ImportCall& call) {
  Term x = call.tensor(0);
  std::vector<Taps> along = read_taps(call, 1, last_sizes(x.type(), 2));
  std::vector<Windows> windows;
  for (const Taps& taps : along)
    windows.push_back({.count = taps.windows,
                       .extent = call.constant(taps.taps),
                       .scale = call.constant(taps.stride),
                       .shift = call.constant(-taps.padding),
                       .divisor = call.constant(1),
                       .dilation = call.constant(taps.dilation)});
  Term seen = window(x, windows, 0);
  auto lead = static_cast<int64_t>(x.type().rank()) - 2;
  std::vector<int64_t> order(static_cast<size_t>(lead));
  std::iota(order.begin(), order.end(), 0);
  order.insert(order.end(), {lead + 2, lead + 3, lead, lead + 1});
  return one(call.builder.reshape(call.builder.permute(seen, order), call.result().shape));
}

// self, output_size, kernel, dilation, padding, stride
Imported import_col2im(const ImportCall& call) {
  Term x = call.tensor(0);
  if (!is_floating(x.dtype())) return decline("of {}", to_text(x.dtype()));
  std::vector<Taps> along = read_taps(call, 2, last_sizes(call.result(), 2));
  Shape shape(call.result().shape.begin(), call.result().shape.end() - 2);
  for (const Taps& taps : along) shape.push_back(call.constant(taps.taps));
  for (const Taps& taps : along) shape.push_back(taps.windows);
  Result<Term> total = summed(call, call.term(call.builder.reshape(x, shape)), along);
  return total ? rounded(call, *total) : Imported(Unsupported{total.reason()});
}

// grad, input_sizes, dim, size, step: windows along `dim`, their elements in the last dimension of grad.
Imported import_unfold_backward(const ImportCall& call) {
  Term grad = call.tensor(0);
  const Shape& shape = call.result().shape;
  if (shape.empty()) return decline("of a 0-d tensor");
  auto dim = static_cast<size_t>(call.dim(2, shape.size()));
  Taps along{shape[dim], grad.type().shape[dim], call.integer(3), call.integer(4), 1, 0};
  std::vector<int64_t> order, back(shape.size());
  for (size_t d = 0; d < shape.size(); ++d)
    if (d != dim) order.push_back(static_cast<int64_t>(d));
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  back[dim] = static_cast<int64_t>(order.size());
  order.insert(order.end(), {static_cast<int64_t>(shape.size()), static_cast<int64_t>(dim)});
  Result<Term> total = summed(call, call.term(call.builder.permute(grad, order)), {along});
  if (!total) return Unsupported{total.reason()};
  return rounded(call, call.term(call.builder.permute(*total, back)));
}

}  // namespace kerf::graph
