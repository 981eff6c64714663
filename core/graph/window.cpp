#include "graph/window.h"

#include <algorithm>

#include "graph/shape.h"

namespace kerf::graph {

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

std::vector<int64_t> window_dims(const Term& windowed, size_t count) {
  std::vector<int64_t> dims;
  for (size_t d = windowed.type().rank() - count; d < windowed.type().rank(); ++d)
    dims.push_back(static_cast<int64_t>(d));
  return dims;
}

Term placed(const Term& term, const std::vector<size_t>& dims, size_t rank) {
  Shape shape(rank, term.builder().context().constant(1));
  for (size_t i = 0; i < dims.size(); ++i) shape[dims[i]] = term.type().shape[i];
  return {term.builder(), term.builder().reshape(term, shape)};
}

Term window_positions(Builder& builder, const std::vector<Windows>& windows, size_t d, sym::Expr size,
                      sym::Expr start, sym::Expr step, double outside) {
  Term positions(builder, builder.iota(size, start, step, DType::i64));
  return placed(window(positions, {windows[d]}, outside), {d, windows.size() + d}, 2 * windows.size());
}

Term own_positions(Builder& builder, sym::Expr size, size_t d, size_t rank) {
  sym::Context& context = builder.context();
  Term positions(builder, builder.iota(size, context.constant(0), context.constant(1), DType::i64));
  return placed(positions, {d}, rank);
}

std::vector<sym::Expr> last_sizes(const TensorType& type, size_t count) {
  return {type.shape.end() - static_cast<std::ptrdiff_t>(count), type.shape.end()};
}

sym::Expr longest_part(sym::Expr a, sym::Expr b) {
  if (!a.is_constant() || !b.is_constant()) return sym::ceil_div(a, b) + 1;
  int64_t x = a.constant(), y = b.constant(), most = 0;
  for (int64_t i = 0; i < y; ++i) most = std::max(most, ((i + 1) * x + y - 1) / y - i * x / y);
  return a.context().constant(most);
}

}  // namespace kerf::graph
