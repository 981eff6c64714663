#include <fmt/format.h>

#include <algorithm>

#include "graph/build.h"
#include "graph/shape.h"
#include "sym/text.h"

namespace kerf::graph {

namespace {

using Types = std::vector<TensorType>;
using Dims = std::vector<int64_t>;

template <class... Args>
Unsupported wrong(fmt::format_string<Args...> format, Args&&... args) {
  return Unsupported{fmt::format(format, std::forward<Args>(args)...)};
}

// The rules of one node, by family. Operand counts and attribute kinds are the verifier's business and hold
// here.
class Inference {
 public:
  Inference(const Graph& graph, const Node& node, std::span<const TensorType> given)
      : graph_(graph), node_(node), given_(given) {}

  Result<Types> run() const {
    switch (node_.op) {
      case Op::input:
      case Op::external:
      case Op::nll_loss: return Types(given_.begin(), given_.end());
      case Op::constant: return one(node_.get<Scalar>(Attr::value).dtype, {});
      case Op::iota: return iota();
      case Op::apply: return apply();
      case Op::cast: return one(node_.get<DType>(Attr::dtype), operand(0).shape);
      case Op::bitcast: return bitcast();
      case Op::reduce: return reduce();
      case Op::permute: return permute();
      case Op::reshape: return reshape();
      case Op::expand: return expand();
      case Op::slice: return slice();
      case Op::flip: return flip();
      case Op::as_strided: return as_strided();
      case Op::cat: return cat();
      case Op::pad: return pad();
      case Op::window: return window();
      case Op::index: return index();
      case Op::gather: return gather();
      case Op::index_put: return index_put();
      case Op::scatter: return scatter();
      case Op::draw_seed: return one(DType::i64, {});
      case Op::random_uniform: return random_uniform();
      case Op::mm:
      case Op::bmm:
      case Op::addmm:
      case Op::baddbmm: return product();
      case Op::softmax:
      case Op::log_softmax:
        return one(node_.get<bool>(Attr::half_to_float) ? DType::f32 : operand(0).dtype, operand(0).shape);
      case Op::softmax_backward:
      case Op::log_softmax_backward: return one(node_.get<DType>(Attr::dtype), operand(1).shape);
      case Op::layer_norm:
      case Op::layer_norm_backward: return layer_norm();
      case Op::group_norm:
      case Op::group_norm_backward:
      case Op::batch_norm:
      case Op::batch_norm_backward: return channel_norm();
      case Op::batch_norm_inference: return one(operand(0));
      case Op::embedding_backward: return one(operand(0).dtype, node_.get<Shape>(Attr::shape));
      case Op::nll_loss_backward: return one(operand(1));
      case Op::native_dropout: return Types{one(operand(0))[0], one(DType::b1, operand(0).shape)[0]};
      case Op::scan:
      case Op::safe_softmax:
      case Op::gelu:
      case Op::gelu_backward: return one(operand(0));
      case Op::assign: return assign();
    }
    UNREACHABLE("op");
  }

 private:
  const TensorType& operand(size_t i) const { return graph_.type(node_.operands[i]); }
  size_t rank(size_t i) const { return operand(i).rank(); }
  sym::Context& context() const { return *graph_.context; }
  const Dims& dims() const { return node_.get<Dims>(Attr::dims); }

  Types one(DType dtype, Shape shape) const {
    return {{.dtype = dtype, .shape = std::move(shape), .strides = {}}};
  }
  Types one(const TensorType& like) const { return one(like.dtype, like.shape); }

  Result<Types> iota() const {
    const Shape& shape = node_.get<Shape>(Attr::shape);
    if (shape.size() != 1) return wrong("an iota has one dimension");
    if (node_.get<DType>(Attr::dtype) != DType::i64) return wrong("an iota is i64");
    return one(DType::i64, shape);
  }

  Result<Types> bitcast() const {
    DType to = node_.get<DType>(Attr::dtype);
    if (byte_size(to) != byte_size(operand(0).dtype)) return wrong("bitcast between widths");
    return one(to, operand(0).shape);
  }

  Result<Types> apply() const {
    ops::ScalarOp op = node_.get<ops::ScalarOp>(Attr::op);
    std::vector<DType> dtypes;
    std::vector<Shape> shapes;
    for (size_t i = 0; i < node_.operands.size(); ++i) {
      dtypes.push_back(operand(i).dtype);
      shapes.push_back(operand(i).shape);
    }
    if (static_cast<int>(dtypes.size()) != ops::info(op).arity)
      return wrong("{} takes {} operands", ops::to_text(op), ops::info(op).arity);
    std::optional<DType> dtype = ops::result_dtype(op, dtypes);
    if (!dtype || ops::info(op).types == ops::Typing::random)
      return wrong("{} does not take {}", ops::to_text(op), to_text(dtypes));
    Result<Shape> shape = broadcast(graph_, shapes);
    if (!shape) return Unsupported{shape.reason()};
    return one(*dtype, *shape);
  }

  static std::string to_text(const std::vector<DType>& dtypes) {
    std::string text;
    for (DType dtype : dtypes) text += fmt::format("{}{}", text.empty() ? "" : ", ", kerf::to_text(dtype));
    return text;
  }

  bool is_dim(int64_t dim, size_t rank) const { return 0 <= dim && dim < static_cast<int64_t>(rank); }
  bool ascending(const Dims& list, size_t rank) const {
    return std::ranges::all_of(list, [&](int64_t dim) { return is_dim(dim, rank); }) &&
           std::ranges::is_sorted(list, std::ranges::less_equal());
  }

  Result<Types> reduce() const {
    ops::ReduceOp op = node_.get<ops::ReduceOp>(Attr::op);
    DType dtype = operand(0).dtype;
    if (ops::info(op).boolean != (dtype == DType::b1) || compute_dtype(dtype) != dtype)
      return wrong("reduce {} does not take {}", ops::to_text(op), kerf::to_text(dtype));
    if (!ascending(dims(), rank(0)))
      return wrong("dims are not dimensions of the operand in ascending order");
    if (ops::info(op).index_result && dims().empty()) return wrong("{} over no dims", ops::to_text(op));
    return one(ops::info(op).index_result ? DType::i64 : dtype,
               indexed_shape(operand(0).shape, dims(), {}, 0));
  }

  Result<Types> flip() const {
    if (!ascending(dims(), rank(0)))
      return wrong("dims are not dimensions of the operand in ascending order");
    return one(operand(0));
  }

  Result<Types> as_strided() const {
    const Shape& shape = node_.get<Shape>(Attr::shape);
    if (node_.get<Shape>(Attr::strides).size() != shape.size()) return wrong("one stride per dimension");
    return one(operand(0).dtype, shape);
  }

  Result<Types> permute() const {
    Dims sorted = dims();
    std::ranges::sort(sorted);
    if (sorted.size() != rank(0) || !ascending(sorted, rank(0)))
      return wrong("dims are not a permutation of the operand's dimensions");
    Shape out;
    for (int64_t dim : dims()) out.push_back(operand(0).shape[static_cast<size_t>(dim)]);
    return one(operand(0).dtype, out);
  }

  Result<Types> reshape() const {
    const Shape& shape = node_.get<Shape>(Attr::shape);
    if (different_size(graph_, sym::product(context(), operand(0).shape), sym::product(context(), shape)))
      return wrong("{} and {} have different numbers of elements", graph::to_text(operand(0).shape),
                   graph::to_text(shape));
    return one(operand(0).dtype, shape);
  }

  Result<Types> expand() const {
    const Shape& in = operand(0).shape;
    const Shape& shape = node_.get<Shape>(Attr::shape);
    if (in.size() > shape.size()) return wrong("expand to fewer dimensions");
    for (size_t i = 0; i < in.size(); ++i)
      if (!in[i].is_constant(1) && different_size(graph_, in[i], shape[shape.size() - in.size() + i]))
        return wrong("{} does not expand to {}", graph::to_text(in), graph::to_text(shape));
    return one(operand(0).dtype, shape);
  }

  Result<Types> slice() const {
    int64_t dim = node_.get<int64_t>(Attr::dim);
    if (!is_dim(dim, rank(0))) return wrong("dim is not a dimension of the operand");
    if (given_[0].rank() != rank(0)) return wrong("a slice keeps the rank");
    sym::Expr start = node_.get<sym::Expr>(Attr::start), step = node_.get<sym::Expr>(Attr::step);
    sym::Expr size = operand(0).shape[static_cast<size_t>(dim)],
              length = given_[0].shape[static_cast<size_t>(dim)];
    if (!step.is_constant() || step.constant() < 1) return wrong("step is not a positive constant");
    if (start.is_constant() && start.constant() < 0) return wrong("start is negative");
    sym::Expr last = start + (length - 1) * step;
    if (!length.is_constant(0) && sym::provably_less_equal(size, last, facts_of(graph_)))
      return wrong("the slice ends after the operand");
    Shape out = operand(0).shape;
    out[static_cast<size_t>(dim)] = length;
    return one(operand(0).dtype, out);
  }

  Result<Types> cat() const {
    if (node_.operands.empty()) return wrong("cat of nothing");
    int64_t dim = node_.get<int64_t>(Attr::dim);
    if (!is_dim(dim, rank(0))) return wrong("dim is not a dimension of the operands");
    Shape out = operand(0).shape;
    auto at = static_cast<size_t>(dim);
    for (size_t i = 1; i < node_.operands.size(); ++i) {
      if (operand(i).dtype != operand(0).dtype) return wrong("operands of different dtypes");
      if (rank(i) != rank(0)) return wrong("operands of different ranks");
      for (size_t d = 0; d < out.size(); ++d)
        if (d != at && different_size(graph_, out[d], operand(i).shape[d]))
          return wrong("operands differ in dimension {}", d);
      out[at] = out[at] + operand(i).shape[at];
    }
    return one(operand(0).dtype, out);
  }

  Result<Types> pad() const {
    const Shape& low = node_.get<Shape>(Attr::low);
    const Shape& high = node_.get<Shape>(Attr::high);
    Shape out = operand(0).shape;
    if (low.size() != out.size() || high.size() != out.size()) return wrong("one low and high per dimension");
    if (node_.get<Scalar>(Attr::value).dtype != operand(0).dtype) return wrong("the value has another dtype");
    for (size_t i = 0; i < out.size(); ++i) out[i] = out[i] + low[i] + high[i];
    return one(operand(0).dtype, out);
  }

  Result<Types> window() const {
    const Shape& shape = node_.get<Shape>(Attr::shape);
    size_t dims = node_.get<Shape>(Attr::scale).size();
    for (Attr attr : {Attr::shift, Attr::divisor, Attr::dilation})
      if (node_.get<Shape>(attr).size() != dims)
        return wrong("one scale, shift, divisor and dilation per dimension");
    if (dims > rank(0) || shape.size() != rank(0) + dims)
      return wrong("a window adds a dimension for each that it is over");
    for (size_t d = 0; d < rank(0) - dims; ++d)
      if (different_size(graph_, shape[d], operand(0).shape[d]))
        return wrong("dimension {} is not the operand's", d);
    for (sym::Expr divisor : node_.get<Shape>(Attr::divisor))
      if (divisor.is_constant() && divisor.constant() < 1) return wrong("a divisor is not positive");
    if (node_.get<Scalar>(Attr::value).dtype != operand(0).dtype) return wrong("the value has another dtype");
    return one(operand(0).dtype, shape);
  }

  // The common shape of the index operands from `first` on.
  Result<Shape> index_shape(size_t first) const {
    std::vector<Shape> shapes;
    for (size_t i = first; i < node_.operands.size(); ++i) {
      if (operand(i).dtype != DType::i64) return wrong("an index is i64");
      shapes.push_back(operand(i).shape);
    }
    if (shapes.empty() || shapes.size() != dims().size())
      return wrong("as many indices as dims, one at least");
    if (!ascending(dims(), rank(0))) return wrong("dims are not dimensions of the data in ascending order");
    if (int64_t at = node_.get<int64_t>(Attr::dim); at < 0 || at + dims().size() > rank(0))
      return wrong("dim is not a place among the dimensions that are kept");
    return broadcast(graph_, shapes);
  }

  Result<Types> index() const {
    Result<Shape> index = index_shape(1);
    if (!index) return Unsupported{index.reason()};
    return one(operand(0).dtype,
               indexed_shape(operand(0).shape, dims(), *index, node_.get<int64_t>(Attr::dim)));
  }

  Result<Types> gather() const {
    if (operand(1).dtype != DType::i64) return wrong("an index is i64");
    if (rank(0) != rank(1) || !is_dim(node_.get<int64_t>(Attr::dim), rank(0)))
      return wrong("index and data have one rank, which has dim");
    return one(operand(0).dtype, operand(1).shape);
  }

  Result<Types> index_put() const {
    if (node_.operands.size() < 2) return wrong("index_put takes data, values and indices");
    Result<Shape> index = index_shape(2);
    if (!index) return Unsupported{index.reason()};
    if (rank(1) > rank(0) - dims().size() + index->size())
      return wrong("values have more dimensions than are indexed");
    return updated(operand(1));
  }

  Result<Types> scatter() const {
    if (operand(1).dtype != DType::i64) return wrong("an index is i64");
    if (rank(0) != rank(1) || rank(0) != rank(2) || !is_dim(node_.get<int64_t>(Attr::dim), rank(0)))
      return wrong("data, index and source have one rank, which has dim");
    return updated(operand(2));
  }

  Result<Types> updated(const TensorType& source) const {
    if (source.dtype != operand(0).dtype) return wrong("data and source have different dtypes");
    return one(operand(0));
  }

  Result<Types> random_uniform() const {
    if (operand(0).dtype != DType::i64 || rank(0) != 0) return wrong("a seed is a 0-d i64");
    return one(DType::f32, node_.get<Shape>(Attr::shape));
  }

  Result<Types> product() const {
    size_t first = node_.op == Op::addmm || node_.op == Op::baddbmm ? 1 : 0;
    size_t batch = node_.op == Op::bmm || node_.op == Op::baddbmm ? 1 : 0;
    const TensorType& a = operand(first);
    const TensorType& b = operand(first + 1);
    if (a.dtype != b.dtype || !is_floating(a.dtype))
      return wrong("a product of {} and {}", kerf::to_text(a.dtype), kerf::to_text(b.dtype));
    if (a.rank() != 2 + batch || b.rank() != 2 + batch) return wrong("a factor has another rank");
    if (batch && different_size(graph_, a.shape[0], b.shape[0])) return wrong("different batch sizes");
    if (different_size(graph_, a.shape[batch + 1], b.shape[batch])) return wrong("inner sizes differ");
    Shape out(a.shape.begin(), a.shape.end() - 1);
    out.push_back(b.shape.back());
    if (first && (operand(0).dtype != a.dtype || rank(0) > out.size()))
      return wrong("the addend does not fit the product");
    return one(a.dtype, out);
  }

  // mean and rstd, and gradients that are masked out, are as the caller says.
  Result<Types> layer_norm() const {
    if (!ascending(dims(), rank(0)) || dims().empty()) return wrong("dims are not dimensions of the operand");
    Types types(given_.begin(), given_.end());
    if (node_.op == Op::layer_norm) types[0] = one(operand(0))[0];
    return types;
  }

  // As layer_norm: the statistics' dtype is what eager's kernel gives.
  Result<Types> channel_norm() const {
    if (rank(0) < 2) return wrong("an input without channels");
    Types types(given_.begin(), given_.end());
    if (node_.op == Op::batch_norm || node_.op == Op::group_norm) types[0] = one(operand(0))[0];
    return types;
  }

  Result<Types> assign() const {
    if (graph_.values[node_.operands[0]].producer.valid() &&
        graph_.nodes[graph_.values[node_.operands[0]].producer].op != Op::input)
      return wrong("only inputs are assigned to");
    if (operand(0).dtype != operand(1).dtype || rank(0) != rank(1))
      return wrong("the new value is of another type");
    return one(operand(0));
  }

  const Graph& graph_;
  const Node& node_;
  std::span<const TensorType> given_;
};

}  // namespace

Result<std::vector<TensorType>> infer_types(const Graph& graph, const Node& node,
                                            std::span<const TensorType> given) {
  Result<Types> types = Inference(graph, node, given).run();
  if (!types) return types;
  for (size_t i = 0; i < types->size(); ++i) {
    TensorType& type = (*types)[i];
    if (i < given.size() && given[i].shape == type.shape && given[i].strides.size() == type.rank())
      type.strides = given[i].strides;
    else
      type.strides = contiguous_strides(*graph.context, type.shape);
  }
  return types;
}

}  // namespace kerf::graph
