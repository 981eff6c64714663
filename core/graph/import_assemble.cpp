// Tensors put together from pieces.
#include <array>
#include <numeric>

#include "graph/import_call.h"
#include "sym/simplify.h"

namespace kerf::graph {

namespace {

ValueId cat(Builder& builder, const std::vector<ValueId>& pieces, int64_t dim) {
  return pieces.size() == 1 ? pieces[0] : builder.node(Op::cat, pieces, {{Attr::dim, dim}}, {})[0];
}

}  // namespace

// tensors, dim. An empty 1-d tensor fits every shape, as torch always allowed.
Imported import_cat(const ImportCall& call) {
  std::vector<ValueId> pieces;
  size_t rank = call.result().rank();
  for (const Term& piece : call.tensors(0))
    if (piece.type().rank() == rank) pieces.push_back(piece.in(call.result().dtype));
  if (pieces.empty()) return decline("of empty tensors");
  int64_t dim = call.is_none(1) ? 0 : call.dim(1, rank);
  if (pieces.size() == 1) return one(call.builder.copy(pieces[0], call.result().dtype));
  return one(cat(call.builder, pieces, dim));
}

// tensors, dim
Imported import_stack(const ImportCall& call) {
  int64_t dim = call.is_none(1) ? 0 : call.dim(1, call.result().rank());
  std::vector<ValueId> pieces;
  for (const Term& piece : call.tensors(0))
    pieces.push_back(call.builder.unsqueeze(piece.in(call.result().dtype), dim));
  if (pieces.size() == 1) return one(call.builder.copy(pieces[0], call.result().dtype));
  return one(cat(call.builder, pieces, dim));
}

// self, pad, value: pairs of low and high from the last dimension on.
Imported import_pad(const ImportCall& call) {
  Term x = call.tensor(0);
  Shape low(x.type().rank(), call.constant(0)), high = low;
  std::vector<sym::Expr> pads = call.sizes(1);
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    low[low.size() - 1 - i] = pads[2 * i];
    high[high.size() - 1 - i] = pads[2 * i + 1];
  }
  Scalar value = call.is_none(2) ? Scalar::of(x.dtype(), 0) : scalar_of(call.argument(2), x.dtype());
  return one(
      call.builder.node(Op::pad, {x}, {{Attr::value, value}, {Attr::low, low}, {Attr::high, high}}, {})[0]);
}

// self, shifts, dims. Without dims: of the flattened elements.
Imported import_roll(const ImportCall& call) {
  Term x = call.tensor(0);
  std::vector<sym::Expr> shifts = call.sizes(1);
  std::vector<sym::Expr> dims = call.is_none(2) ? std::vector<sym::Expr>{} : call.sizes(2);
  Shape shape = x.type().shape;
  if (shape.empty()) return one(call.builder.copy(x, x.dtype()));
  if (dims.empty()) x = call.term(call.builder.reshape(x, {sym::product(call.context(), shape)}));
  sym::Facts facts = call.facts();
  for (size_t i = 0; i < shifts.size(); ++i) {
    int64_t dim = dims.empty() ? 0 : wrap_dim(known(dims[i]), shape.size());
    sym::Expr size = x.type().shape[static_cast<size_t>(dim)];
    if (size.is_constant(0)) continue;
    if (!sym::provably_less(call.constant(0), size, facts)) return decline("a size that may be 0");
    sym::Expr start = sym::simplify(sym::mod(sym::neg(shifts[i]), size), facts);
    if (start.is_constant(0)) continue;
    ValueId tail = call.builder.slice(x, dim, start, size - start, 1);
    x = call.term(cat(call.builder, {tail, call.builder.slice(x, dim, call.constant(0), start, 1)}, dim));
  }
  return one(call.builder.copy(call.builder.reshape(x, shape), x.dtype()));
}

// self, repeats: each dimension becomes (repeat, size) and is flattened again.
Imported import_repeat(const ImportCall& call) {
  Term x = call.tensor(0);
  std::vector<sym::Expr> repeats = call.sizes(1);
  Shape split, repeated;
  size_t added = repeats.size() - x.type().rank();
  for (size_t i = 0; i < repeats.size(); ++i) {
    sym::Expr size = i < added ? call.constant(1) : x.type().shape[i - added];
    split.insert(split.end(), {call.constant(1), size});
    repeated.insert(repeated.end(), {repeats[i], size});
  }
  ValueId tiles = call.builder.expand(call.builder.reshape(x, split), repeated);
  return one(call.builder.copy(call.builder.reshape(tiles, call.result().shape), x.dtype()));
}

namespace {

// The elements of x seen in `shape`, its dimensions in that order, in the result's shape.
Imported rearranged(const ImportCall& call, const Shape& shape, const std::vector<int64_t>& order) {
  ValueId split = call.builder.reshape(call.tensor(0), shape);
  return one(call.builder.reshape(call.builder.permute(split, order), call.result().shape));
}

// The same of the last three dimensions, seen as five.
Imported rearranged_images(const ImportCall& call, const std::array<sym::Expr, 5>& split,
                           const std::array<int64_t, 5>& dims) {
  const Shape& from = call.tensor(0).type().shape;
  Shape shape(from.begin(), from.end() - 3);
  std::vector<int64_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  for (int64_t dim : dims) order.push_back(static_cast<int64_t>(shape.size()) + dim);
  shape.insert(shape.end(), split.begin(), split.end());
  return rearranged(call, shape, order);
}

}  // namespace

// self, factor: channels to the pixels of blocks of factor by factor.
Imported import_pixel_shuffle(const ImportCall& call) {
  const Shape& from = call.tensor(0).type().shape;
  const Shape& to = call.result().shape;
  size_t n = from.size();
  sym::Expr factor = call.constant(call.integer(1));
  return rearranged_images(call, {to[n - 3], factor, factor, from[n - 2], from[n - 1]}, {0, 3, 1, 4, 2});
}

// self, factor: back.
Imported import_pixel_unshuffle(const ImportCall& call) {
  const Shape& from = call.tensor(0).type().shape;
  const Shape& to = call.result().shape;
  size_t n = from.size();
  sym::Expr factor = call.constant(call.integer(1));
  return rearranged_images(call, {from[n - 3], to[n - 2], factor, to[n - 1], factor}, {0, 2, 4, 1, 3});
}

// self, groups: channel c of group g becomes channel g of group c.
Imported import_channel_shuffle(const ImportCall& call) {
  Shape shape = call.tensor(0).type().shape;
  int64_t groups = call.integer(1);
  shape[1] = sym::floor_div(shape[1], groups);
  shape.insert(shape.begin() + 1, call.constant(groups));
  std::vector<int64_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[1], order[2]);
  return rearranged(call, shape, order);
}

}  // namespace kerf::graph
