// Indexed reads. Index tensors are i64; torch's index and index_put count negative indices from the end, all
// others refuse them.
#include <algorithm>

#include "graph/import_call.h"

namespace kerf::graph {

namespace {

ValueId index_node(Builder& builder, ValueId data, std::vector<ValueId> indices, std::vector<int64_t> dims,
                   bool wrap, int64_t at) {
  indices.insert(indices.begin(), data);
  return builder.node(Op::index, std::move(indices),
                      {{Attr::dims, std::move(dims)}, {Attr::wrap, wrap}, {Attr::dim, at}}, {})[0];
}

}  // namespace

// weight, indices, ...
Imported import_embedding(const ImportCall& call) {
  Term weight = call.tensor(0), indices = call.tensor(1).in(DType::i64);
  return one(index_node(call.builder, weight, {indices}, {0}, false, 0));
}

// self, dim, index
Imported import_index_select(const ImportCall& call) {
  Term x = call.tensor(0), index = call.tensor(2).in(DType::i64);
  if (x.type().rank() == 0) return decline("of a 0-d tensor");
  int64_t dim = call.dim(1, x.type().rank());
  ValueId list = call.builder.reshape(index, {call.result().shape[static_cast<size_t>(dim)]});
  return one(index_node(call.builder, x, {list}, {dim}, false, dim));
}

// self, dim, index, sparse_grad
Imported import_gather(const ImportCall& call) {
  Term x = call.tensor(0), index = call.tensor(2).in(DType::i64);
  int64_t dim = call.dim(1, x.type().rank());
  ValueId data = x.type().rank() ? x.value() : call.builder.unsqueeze(x, 0);
  ValueId list = index.type().rank() ? index.value() : call.builder.unsqueeze(index, 0);
  if (call.builder.type(data).rank() != call.builder.type(list).rank())
    return decline("an empty index of another rank");
  return one(call.builder.reshape(call.builder.node(Op::gather, {data, list}, {{Attr::dim, dim}}, {})[0],
                                  call.result().shape));
}

Result<Indices> read_indices(const ImportCall& call, size_t argument) {
  Indices indices;
  const auto& list = std::get<ArgumentList>(call.argument(argument).value);
  for (size_t i = 0; i < list.size(); ++i) {
    const auto* tensor = std::get_if<ValueId>(&list[i].value);
    if (!tensor) continue;
    DType dtype = call.builder.type(*tensor).dtype;
    if (dtype == DType::b1 || dtype == DType::u8)
      return decline("a mask selects as many elements as the data say");
    indices.dims.push_back(static_cast<int64_t>(i));
    indices.tensors.push_back(call.builder.cast(*tensor, DType::i64));
  }
  if (indices.dims.empty()) return decline("no index");
  // Where the indices' shape goes: to the first of adjacent indexed dimensions, else to the front.
  bool adjacent = indices.dims.back() - indices.dims.front() + 1 == static_cast<int64_t>(indices.dims.size());
  indices.at = adjacent ? indices.dims.front() : 0;
  return indices;
}

// self, indices
Imported import_index(const ImportCall& call) {
  Result<Indices> indices = read_indices(call, 1);
  if (!indices) return Unsupported{indices.reason()};
  return one(index_node(call.builder, call.tensor(0), indices->tensors, indices->dims, true, indices->at));
}

// self, mask, indices, fill: indices outside self count as the nearest inside where the mask is false.
Imported import_masked_index(const ImportCall& call) {
  Term x = call.tensor(0), mask = call.tensor(1).in(DType::b1);
  Result<Indices> indices = read_indices(call, 2);
  if (!indices) return Unsupported{indices.reason()};
  if (indices->dims.size() != x.type().rank()) return decline("some dimensions are not indexed");
  for (size_t i = 0; i < indices->tensors.size(); ++i) {
    Term last = call.term(call.builder.size_value(x.type().shape[i] - 1));
    indices->tensors[i] = maximum(minimum(call.term(indices->tensors[i]), last), 0.0);
  }
  Term read = call.term(index_node(call.builder, x, indices->tensors, indices->dims, true, indices->at));
  return one(where(mask, read, call.operand(3, x.dtype())));
}

}  // namespace kerf::graph
