#pragma once
// The Graph: tensor-level SSA, what FX says. A flat vector of nodes in topological order; values are results
// of nodes.
//
// Meaning
//   * Value types: dtype and shape are the meaning; `strides` are eager's (from tracing) and matter only
//   where the
//     value leaves the graph or is an extern's result. Values are functional: no node changes an operand,
//     except `assign`, which stands for the write-back into a graph input.
//   * `apply` broadcasts its operands by the usual trailing-dimension rule. Operands have the dtypes that the
//   op's row
//     demands. Arithmetic (apply, reduce, scan) is never done in f16 or bf16: the importer casts to f32, computes,
//     and rounds once by a cast. `cast` to the dtype it already has is a copy (aten.clone).
//   * `reduce` removes the reduced dimensions (a keepdim is a reshape after it).
//   * Views (permute, reshape, expand, slice, flip) are index maps: they never own memory.
//   * Composites (softmax, layer_norm, ...) are whole nodes until expand_composites; a node may be a
//   torch-level
//     composite, and nothing here assumes that AOTAutograd ran.
//   * `external` nodes carry the operator's name and its full argument list; tensor arguments are TensorViews
//   whose
//     `buffer` is the position in the node's operands (their shape and strides are not used).
// graph_ops.def lists the ops with their operands, attributes and results; verify.h the invariants.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/ids.h"
#include "ops/reduce_op.h"
#include "ops/scalar_op.h"
#include "sym/expr.h"
#include "sym/facts.h"
#include "target/extern_call.h"

namespace kerf::graph {

using NodeId = Id<struct GraphNodeTag>;
using ValueId = Id<struct GraphValueTag>;
using SourceId = Id<struct GraphSourceTag>;

enum class Op : uint8_t {
#define GRAPH_OP(name, ...) name,
#include "graph/graph_ops.def"
#undef GRAPH_OP
};

enum class Family : uint8_t {
  source,
  pointwise,
  reduce,
  view,
  assemble,
  gather,
  scatter,
  scan,
  random,
  matmul,
  composite,
  external,
  effect
};

struct OpInfo {
  std::string_view text;
  Family family;
  int operands = -1;  // -1: any number
  int results = 1;
  std::string_view attributes = {};  // "dim keepdim": names that a node of this op carries, all required
};

const OpInfo& info(Op op);
std::optional<Op> op_from_text(std::string_view text);

struct TensorType {
  DType dtype = DType::f32;
  std::vector<sym::Expr> shape;
  std::vector<sym::Expr> strides;  // eager's, in elements
  std::string opaque =
      {};  // a torch dtype that Kerf does not compute with ("complex64"); dtype is then unused
  size_t rank() const { return shape.size(); }
};

enum class Attr : uint8_t {
#define ATTRIBUTE(name, kind) name,
#include "graph/attributes.def"
#undef ATTRIBUTE
};

// Which alternative of AttrValue an attribute holds.
enum class AttrKind : uint8_t {
  boolean,
  integer,
  number,
  dtype,
  scalar,
  string,
  expression,
  integers,
  expressions,
  operation,  // ScalarOp for apply, ReduceOp for reduce and scan
  arguments
};
AttrKind kind_of(Attr attr);
std::string_view to_text(Attr attr);
std::optional<Attr> attr_from_text(std::string_view text);

using AttrValue =
    std::variant<bool, int64_t, double, DType, Scalar, std::string, sym::Expr, std::vector<int64_t>,
                 std::vector<sym::Expr>, ops::ScalarOp, ops::ReduceOp, target::ExternArgumentList>;

struct Node {
  Op op;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  std::vector<std::pair<Attr, AttrValue>> attributes;  // sorted by Attr
  SourceId source;                                     // the user's line, may be invalid

  const AttrValue* find(Attr attr) const;
  template <class T>
  const T& get(Attr attr) const {
    const AttrValue* value = find(attr);
    CHECK(value && std::holds_alternative<T>(*value), "node {} has no attribute {} of that type",
          info(op).text, to_text(attr));
    return std::get<T>(*value);
  }
};

struct Value {
  TensorType type;
  NodeId producer;
  uint32_t result = 0;  // position among the producer's results
};

// What the graph returns, in order.
struct Output {
  enum class Kind : uint8_t { tensor, integer, none } kind = Kind::none;
  ValueId value;      // tensor
  sym::Expr integer;  // integer
  bool any_strides =
      false;  // tensor: nobody but our own backward graph sees it, so its strides need not be eager's
};

struct Size {
  sym::Expr symbol;
  sym::Range range;
  sym::Modulus modulus;
};

struct Graph {
  sym::Context* context = nullptr;
  std::vector<Size> sizes;
  std::vector<target::SizeSource> size_sources;  // `input` counts all arguments of the compiled call
  IdVector<NodeId, Node> nodes;
  IdVector<ValueId, Value> values;
  std::vector<Output> outputs;
  IdVector<SourceId, std::string> sources;  // "model.py:12 in forward: x = self.fc(x)"

  const TensorType& type(ValueId id) const { return values[id].type; }
};

sym::Facts facts_of(const Graph& graph);

}  // namespace kerf::graph
