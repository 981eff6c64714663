#pragma once
// Building graphs. Every function appends one node (or a few) and returns its result; shapes and dtypes are
// inferred and strides of new values are contiguous unless given. Illegal operands are bugs of the caller
// (CHECK).
#include <initializer_list>
#include <span>
#include <string>
#include <unordered_map>

#include "graph/graph.h"
#include "graph/strides.h"

namespace kerf::graph {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}
  Graph& graph() { return graph_; }
  sym::Context& context() { return *graph_.context; }
  void set_source(SourceId source) { source_ = source; }
  SourceId add_source(const std::string& text);  // the same text gives the same id

  // sources
  ValueId input(int index, TensorType type);
  ValueId constant(Scalar value);
  ValueId full(const std::vector<sym::Expr>& shape, Scalar value);
  ValueId iota(sym::Expr length, sym::Expr start, sym::Expr step, DType dtype);  // i64, then a cast
  ValueId size_value(sym::Expr size);  // an integer expression over sizes as a 0-d i64

  // pointwise; operands broadcast
  ValueId apply(ops::ScalarOp op, std::initializer_list<ValueId> operands);
  ValueId apply(ops::ScalarOp op, std::span<const ValueId> operands);
  ValueId cast(ValueId value, DType dtype);  // the value itself when it has that dtype
  ValueId copy(ValueId value, DType dtype);  // always a node: memory of its own

  ValueId reduce(ops::ReduceOp op, ValueId value, std::vector<int64_t> dims, bool keepdim = false);

  // views
  ValueId permute(ValueId value, std::vector<int64_t> dims);
  ValueId reshape(ValueId value, std::vector<sym::Expr> shape);
  ValueId expand(ValueId value, std::vector<sym::Expr> shape);
  ValueId slice(ValueId value, int64_t dim, sym::Expr start, sym::Expr length, int64_t step);
  ValueId flip(ValueId value, std::vector<int64_t> dims);
  ValueId squeeze(ValueId value, int64_t dim);    // a reshape
  ValueId unsqueeze(ValueId value, int64_t dim);  // a reshape

  // any node; result types given
  std::vector<ValueId> node(Op op, std::vector<ValueId> operands,
                            std::vector<std::pair<Attr, AttrValue>> attributes,
                            std::vector<TensorType> results);
  std::vector<ValueId> external(const std::string& name, std::vector<ValueId> operands,
                                target::ExternArgumentList arguments, const std::string& reason,
                                std::vector<TensorType> results);
  ValueId assign(ValueId input, ValueId value);

  const TensorType& type(ValueId value) const { return graph_.type(value); }

 private:
  Graph& graph_;
  SourceId source_;
  std::unordered_map<std::string, SourceId> source_ids_;
};

// The common shape of broadcast operands; CHECKs that they broadcast. Sizes are compared as expressions.
std::vector<sym::Expr> broadcast_shapes(std::span<const std::vector<sym::Expr>> shapes,
                                        sym::Context& context);

}  // namespace kerf::graph
