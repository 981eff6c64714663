// Views. Sizes are the traced ones, so that -1, None and broadcasting are already resolved.
#include <algorithm>
#include <numeric>

#include "graph/import_call.h"
#include "graph/strided.h"
#include "sym/simplify.h"

namespace kerf::graph {

namespace {

std::vector<int64_t> iota_dims(size_t rank) {
  std::vector<int64_t> dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

}  // namespace

// When the sign is unknown, `below` is -1 for a negative position and 0 for others.
sym::Expr clamped_position(const ImportCall& call, sym::Expr position, sym::Expr size) {
  sym::Facts facts = call.facts();
  sym::Expr zero = call.constant(0);
  if (!sym::provably_less_equal(zero, position, facts)) {
    sym::Expr below = sym::max(sym::min(position, zero), call.constant(-1));
    position = sym::simplify(position - below * size, facts);
    if (!sym::provably_less_equal(zero, position, facts)) position = sym::max(position, zero);
  }
  if (!sym::provably_less_equal(position, size, facts)) position = sym::min(position, size);
  return sym::simplify(position, facts);
}

// view, reshape, squeeze, unsqueeze and all that keep the order of elements.
Imported import_reshape(const ImportCall& call) {
  return one(call.builder.reshape(call.tensor(0), call.result().shape));
}

// detach, alias: the value itself.
Imported import_same(const ImportCall& call) { return one(call.tensor(0)); }

Imported import_expand(const ImportCall& call) {
  return one(call.builder.expand(call.tensor(0), call.result().shape));
}

Imported import_permute(const ImportCall& call) {
  Term x = call.tensor(0);
  std::vector<int64_t> dims;
  for (sym::Expr dim : call.sizes(1)) dims.push_back(wrap_dim(known(dim), x.type().rank()));
  return one(call.builder.permute(x, dims));
}

Imported import_transpose(const ImportCall& call) {
  Term x = call.tensor(0);
  size_t rank = x.type().rank();
  if (rank == 0) return one(x);
  std::vector<int64_t> dims = iota_dims(rank);
  std::swap(dims[static_cast<size_t>(call.dim(1, rank))], dims[static_cast<size_t>(call.dim(2, rank))]);
  return one(call.builder.permute(x, dims));
}

// Of a matrix; vectors and 0-d tensors stay.
Imported import_t(const ImportCall& call) {
  Term x = call.tensor(0);
  return one(x.type().rank() == 2 ? call.builder.permute(x, {1, 0}) : x.value());
}

// self, dim, start, end, step. The length is the traced one; the end says nothing new.
Imported import_slice(const ImportCall& call) {
  Term x = call.tensor(0);
  int64_t dim = call.dim(1, x.type().rank());
  auto at = static_cast<size_t>(dim);
  sym::Expr start = call.is_none(2) ? call.constant(0) : call.size(2);
  sym::Expr position = clamped_position(call, start, x.type().shape[at]);
  return one(
      call.builder.slice(x, dim, position, call.result().shape[at], call.is_none(4) ? 1 : call.integer(4)));
}

// self, dim, start, length
Imported import_narrow(const ImportCall& call) {
  Term x = call.tensor(0);
  int64_t dim = call.dim(1, x.type().rank());
  sym::Expr position = clamped_position(call, call.size(2), x.type().shape[static_cast<size_t>(dim)]);
  return one(call.builder.slice(x, dim, position, call.size(3), 1));
}

// self, dim, index
Imported import_select(const ImportCall& call) {
  Term x = call.tensor(0);
  int64_t dim = call.dim(1, x.type().rank());
  sym::Expr position = clamped_position(call, call.size(2), x.type().shape[static_cast<size_t>(dim)]);
  ValueId row = call.builder.slice(x, dim, position, call.constant(1), 1);
  return one(call.builder.reshape(row, call.result().shape));
}

// split, split_with_sizes, chunk and (`flag` 1: the dimension goes away) unbind. The pieces' lengths are the
// traced ones. `number` is the schema position of dim.
Imported import_split(const ImportCall& call) {
  Term x = call.tensor(0);
  bool unbind = call.row.flag == 1;
  int64_t dim = call.dim(static_cast<size_t>(call.row.number), x.type().rank());
  sym::Expr start = call.constant(0);
  std::vector<ValueId> pieces;
  for (const TensorType& piece : call.call.results) {
    sym::Expr length = unbind ? call.constant(1) : piece.shape[static_cast<size_t>(dim)];
    pieces.push_back(call.builder.reshape(call.builder.slice(x, dim, start, length, 1), piece.shape));
    start = start + length;
  }
  return pieces;
}

Imported import_flip(const ImportCall& call) {
  Term x = call.tensor(0);
  std::vector<int64_t> dims;
  for (sym::Expr dim : call.sizes(1)) dims.push_back(wrap_dim(known(dim), x.type().rank()));
  if (x.type().rank() == 0) return one(x);
  return one(call.builder.copy(call.builder.flip(x, dims), x.dtype()));
}

// self, offset, dim1, dim2: over the row-major elements of the operand with both dimensions moved to the end.
Imported import_diagonal(const ImportCall& call) {
  Term x = call.tensor(0);
  size_t rank = x.type().rank();
  int64_t offset = call.integer(1), first = call.dim(2, rank), second = call.dim(3, rank);
  std::vector<int64_t> order;
  for (int64_t dim : iota_dims(rank))
    if (dim != first && dim != second) order.push_back(dim);
  order.insert(order.end(), {first, second});
  ValueId moved = call.builder.permute(x, order);
  Shape strides = contiguous_strides(call.context(), call.builder.type(moved).shape);
  sym::Expr row = strides[rank - 2];
  strides.resize(rank - 1);
  strides.back() = row + 1;
  sym::Expr start = offset >= 0 ? call.constant(offset) : row * -offset;
  // Nothing lies on a diagonal outside the matrix: its start may be, too.
  if (call.result().shape.back().is_constant(0)) start = call.constant(0);
  const TensorType& result = call.result();
  return one(call.builder.node(Op::as_strided, {moved},
                               {{Attr::shape, result.shape}, {Attr::strides, strides}, {Attr::offset, start}},
                               {{.dtype = result.dtype, .shape = result.shape, .strides = {}}})[0]);
}

// self, dimension, size, step: the windows along a dimension, their elements in a new last one.
Imported import_unfold(const ImportCall& call) {
  Term x = call.tensor(0);
  if (x.type().rank() == 0) return decline("of a 0-d tensor");
  auto along = static_cast<size_t>(call.dim(1, x.type().rank()));
  Shape strides = contiguous_strides(call.context(), x.type().shape);
  strides.push_back(strides[along]);
  strides[along] = strides[along] * call.size(3);
  const TensorType& result = call.result();
  return one(call.builder.node(
      Op::as_strided, {x},
      {{Attr::shape, result.shape}, {Attr::strides, strides}, {Attr::offset, call.constant(0)}},
      {{.dtype = result.dtype, .shape = result.shape, .strides = {}}})[0]);
}

namespace {

// Whether a value begins its storage: computed here, or filled with one number. Views, inputs and results of the library may lie
// anywhere; but a reshape keeps the order of what is contiguous.
bool starts_storage(const Graph& graph, ValueId value) {
  const Node* producer = &graph.nodes[graph.values[value].producer];
  if (producer->op == Op::reshape) {
    const TensorType& base = graph.type(producer->operands[0]);
    if (base.strides != contiguous_strides(*graph.context, base.shape)) return false;
    return starts_storage(graph, producer->operands[0]);
  }
  const Node& node = *producer;
  if (node.op == Op::expand) return graph.nodes[graph.values[node.operands[0]].producer].op == Op::constant;
  Family family = info(node.op).family;
  return family != Family::view && family != Family::source && family != Family::external;
}

}  // namespace

Result<Strided> read_strided(const ImportCall& call, const Term& tensor, size_t first) {
  Strided strided{call.sizes(first), call.sizes(first + 1), call.constant(0)};
  if (tensor.type().strides != contiguous_strides(call.context(), tensor.type().shape))
    return decline("self is not contiguous");
  bool is_whole_storage = starts_storage(call.builder.graph(), tensor);
  if (!call.is_none(first + 2)) {
    strided.offset = call.size(first + 2);
    if (!is_whole_storage) return decline("an offset into a storage that is not known");
  }
  sym::Expr last = strided.offset;
  for (size_t i = 0; i < strided.shape.size(); ++i) last = last + (strided.shape[i] - 1) * strided.strides[i];
  bool empty = std::ranges::any_of(strided.shape, [](sym::Expr extent) { return extent.is_constant(0); });
  sym::Expr size = sym::product(call.context(), tensor.type().shape);
  // Tracing has checked the bounds of the storage, and guards them where they are symbolic.
  bool is_inside = is_whole_storage ? !sym::provably_less_equal(size, last, call.facts())
                                    : sym::provably_less(last, size, call.facts());
  if (!empty && !is_inside) return decline("it reaches outside self");
  return strided;
}

// self, size, stride, storage_offset
Imported import_as_strided(const ImportCall& call) {
  Term x = call.tensor(0);
  Result<Strided> at = read_strided(call, x, 1);
  if (!at) return Unsupported{at.reason()};
  return one(
      call.builder.node(Op::as_strided, {x},
                        {{Attr::shape, at->shape}, {Attr::strides, at->strides}, {Attr::offset, at->offset}},
                        {call.result()})[0]);
}

// self, dtype: the bits of another type of one width.
Imported import_bitcast(const ImportCall& call) {
  Term x = call.tensor(0);
  DType to = call.result().dtype;
  if (byte_size(to) != byte_size(x.dtype())) return decline("another width");
  if (to == DType::b1 || x.dtype() == DType::b1) return decline("bits of bool");
  // Kernels compute with half-precision values as f32 and never hold their bits.
  if (compute_dtype(to) != to || compute_dtype(x.dtype()) != x.dtype())
    return decline("bits of half precision");
  return one(call.builder.node(Op::bitcast, {x}, {{Attr::dtype, to}}, {})[0]);
}

}  // namespace kerf::graph
