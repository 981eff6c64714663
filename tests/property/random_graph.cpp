#include "random_graph.h"

#include <algorithm>
#include <bit>
#include <random>

#include "graph/build.h"

namespace kerf::testing {

using graph::ValueId;
using sym::Expr;

namespace {

constexpr int64_t kIndexBound = 2;  // every dimension that is indexed has at least this many elements

class Generator {
 public:
  Generator(sym::Context& context, uint64_t seed, const RandomGraphOptions& options)
      : context_(context), random_(seed), options_(options), builder_(graph_) {
    graph_.context = &context;
  }

  graph::Graph run() {
    if (options_.dynamic) {
      size_ = context_.symbol("s0", sym::SymbolKind::size);
      graph_.sizes.push_back({size_, {2, 9}, {}});
      graph_.size_sources.push_back({size_, 0, 0});
    }
    make_inputs();
    for (int i = 0; i < options_.nodes; ++i) {
      if (std::optional<ValueId> value = step()) values_.push_back(*value);
    }
    make_outputs();
    return std::move(graph_);
  }

 private:
  int pick(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }
  bool chance(int percent) { return pick(100) < percent; }
  Expr number(int64_t value) { return context_.constant(value); }
  const std::vector<Expr>& shape(ValueId value) { return builder_.type(value).shape; }
  ValueId any() {
    return values_[values_.size() - 1 -
                   static_cast<size_t>(pick(static_cast<int>(std::min<size_t>(values_.size(), 6))))];
  }

  Expr dimension() {
    return number(options_.extents[static_cast<size_t>(pick(static_cast<int>(options_.extents.size())))]);
  }

  void make_inputs() {
    int count = 2 + pick(2);
    std::vector<Expr> common;
    for (int rank = 1 + pick(3); rank > 0; --rank) common.push_back(dimension());
    if (options_.dynamic) common[0] = size_;
    for (int i = 0; i < count; ++i) {
      std::vector<Expr> dims = common;
      if (i > 0 && chance(50))
        for (Expr& d : dims)
          if (chance(40)) d = number(1);
      graph::TensorType type{DType::f64, dims, graph::contiguous_strides(context_, dims), {}};
      if (i > 0 && dims.size() == 2 && chance(30)) type.strides = {number(1), dims[0]};
      values_.push_back(builder_.input(i, type));
    }
    std::vector<Expr> index_shape{number(5)};
    index_ = builder_.input(count,
                            {DType::i64, index_shape, graph::contiguous_strides(context_, index_shape), {}});
  }

  std::optional<ValueId> step() {
    switch (pick(13)) {
      case 0:
      case 1:
      case 2: return binary();
      case 3: return unary();
      case 4:
      case 5: return reduction();
      case 6: return reshaped();
      case 7: return view();
      case 8: return chance(50) ? concatenation() : indexed();
      case 9: return squares();
      case 10: return chance(50) ? extremum_index() : any_positive();
      case 11: return rotated();
      default: return normalized();
    }
  }

  std::optional<ValueId> binary() {
    ValueId a = any(), b = any();
    if (!broadcast(a, b)) b = a;
    static constexpr ops::ScalarOp kOps[] = {ops::ScalarOp::add, ops::ScalarOp::sub, ops::ScalarOp::maximum,
                                             ops::ScalarOp::minimum};
    return builder_.apply(kOps[pick(4)], {a, b});
  }

  bool broadcast(ValueId a, ValueId b) {
    const auto &x = shape(a), &y = shape(b);
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      Expr p = x[x.size() - 1 - i], q = y[y.size() - 1 - i];
      if (!(p == q || p.is_constant(1) || q.is_constant(1))) return false;
    }
    return true;
  }

  ValueId unary() {
    ValueId a = any();
    switch (pick(4)) {
      case 0: return builder_.apply(ops::ScalarOp::neg, {a});
      case 1: return builder_.apply(ops::ScalarOp::abs, {a});
      case 2:
        return builder_.apply(ops::ScalarOp::add, {a, builder_.constant(Scalar::of(DType::f64, pick(5)))});
      default: {
        ValueId zero = builder_.constant(Scalar::of(DType::f64, 0));
        return builder_.apply(ops::ScalarOp::where, {builder_.apply(ops::ScalarOp::gt, {a, zero}), a, zero});
      }
    }
  }

  std::optional<ValueId> reduction() {
    ValueId a = any();
    int rank = static_cast<int>(shape(a).size());
    if (rank == 0) return std::nullopt;
    static constexpr ops::ReduceOp kOps[] = {ops::ReduceOp::sum, ops::ReduceOp::max, ops::ReduceOp::min,
                                             ops::ReduceOp::first_max, ops::ReduceOp::first_min};
    return builder_.reduce(kOps[pick(5)], a, some_dims(rank), chance(60));
  }

  std::vector<int64_t> some_dims(int rank) {
    std::vector<int64_t> dims;
    for (int d = 0; d < rank; ++d)
      if (chance(50)) dims.push_back(d);
    if (dims.empty()) dims.push_back(pick(rank));
    return dims;
  }

  // x - max over a row, summed over the row, subtracted: the pattern of softmax and norms in exact arithmetic.
  std::optional<ValueId> normalized() {
    ValueId a = any();
    int rank = static_cast<int>(shape(a).size());
    if (rank == 0) return std::nullopt;
    std::vector<int64_t> dims{pick(rank)};
    ValueId centred =
        builder_.apply(ops::ScalarOp::sub, {a, builder_.reduce(ops::ReduceOp::max, a, dims, true)});
    ValueId clipped =
        builder_.apply(ops::ScalarOp::maximum, {centred, builder_.constant(Scalar::of(DType::f64, -7))});
    values_.push_back(clipped);
    ValueId total = builder_.reduce(ops::ReduceOp::sum, clipped, dims, true);
    if (rank > 1 && chance(60)) values_.push_back(sum_across(clipped, dims[0]));
    return builder_.apply(ops::ScalarOp::sub, {clipped, total});
  }

  // The sum of squares around another fold of the same elements, as in a variance. They stay small, and the folded
  // extents are powers of two, so that means of parts are exact.
  std::optional<ValueId> squares() {
    ValueId a = any();
    std::vector<int64_t> dims;
    for (size_t d = 0; d < shape(a).size(); ++d) {
      Expr extent = shape(a)[d];
      bool is_power = !extent.is_constant() || std::has_single_bit(static_cast<uint64_t>(extent.constant()));
      if (is_power && chance(60)) dims.push_back(static_cast<int64_t>(d));
    }
    if (dims.empty()) return std::nullopt;
    ValueId low = builder_.constant(Scalar::of(DType::f64, -7)),
            high = builder_.constant(Scalar::of(DType::f64, 7));
    ValueId x =
        builder_.apply(ops::ScalarOp::minimum, {builder_.apply(ops::ScalarOp::maximum, {a, low}), high});
    ValueId total = builder_.reduce(ops::ReduceOp::sum, x, dims, true);
    ValueId deviation = builder_.apply(ops::ScalarOp::sub, {x, total});
    return builder_.reduce(ops::ReduceOp::sum, builder_.apply(ops::ScalarOp::mul, {deviation, deviation}),
                           dims, chance(60));
  }

  // Ties are frequent: there are few values.
  std::optional<ValueId> extremum_index() {
    ValueId a = any();
    int rank = static_cast<int>(shape(a).size());
    if (rank == 0) return std::nullopt;
    ops::ReduceOp op = chance(50) ? ops::ReduceOp::argmax : ops::ReduceOp::argmin;
    return builder_.cast(builder_.reduce(op, a, some_dims(rank), chance(60)), DType::f64);
  }

  std::optional<ValueId> any_positive() {
    ValueId a = any();
    int rank = static_cast<int>(shape(a).size());
    if (rank == 0) return std::nullopt;
    ValueId positive = builder_.apply(ops::ScalarOp::gt, {a, builder_.constant(Scalar::of(DType::f64, 0))});
    ops::ReduceOp op = chance(50) ? ops::ReduceOp::any : ops::ReduceOp::all;
    return builder_.cast(builder_.reduce(op, positive, {pick(rank)}, chance(60)), DType::f64);
  }

  // Over all dimensions but one: a column fold beside a row fold of the same values.
  ValueId sum_across(ValueId value, int64_t row) {
    std::vector<int64_t> others;
    for (int64_t d = 0; d < static_cast<int64_t>(shape(value).size()); ++d)
      if (d != row) others.push_back(d);
    return builder_.reduce(ops::ReduceOp::sum, value, others, chance(40));
  }

  std::optional<ValueId> reshaped() {
    ValueId a = any();
    std::vector<Expr> dims = shape(a);
    if (dims.size() >= 2 && chance(60)) {
      size_t at = static_cast<size_t>(pick(static_cast<int>(dims.size()) - 1));
      dims[at] = dims[at] * dims[at + 1];
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      return builder_.reshape(a, dims);
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!dims[d].is_constant() || dims[d].constant() % 2 != 0) continue;
      int64_t half = dims[d].constant() / 2;
      dims[d] = number(2);
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(d) + 1, number(half));
      return builder_.reshape(a, dims);
    }
    return builder_.unsqueeze(a, 0);
  }

  std::optional<ValueId> view() {
    ValueId a = any();
    size_t rank = shape(a).size();
    if (rank == 0) return builder_.expand(a, {dimension()});
    switch (pick(4)) {
      case 0: {
        std::vector<int64_t> dims(rank);
        for (size_t d = 0; d < rank; ++d) dims[d] = static_cast<int64_t>(d);
        std::shuffle(dims.begin(), dims.end(), random_);
        return builder_.permute(a, dims);
      }
      case 1: return builder_.flip(a, {pick(static_cast<int>(rank))});
      case 2: {
        std::vector<Expr> dims = shape(a);
        dims.insert(dims.begin(), number(2 + pick(2)));
        return rank < 4 ? std::optional(builder_.expand(a, dims)) : std::nullopt;
      }
      default: {
        int64_t dim = pick(static_cast<int>(rank));
        Expr extent = shape(a)[static_cast<size_t>(dim)];
        if (!extent.is_constant() || extent.constant() < 2) return std::nullopt;
        int64_t start = pick(2), step = 1 + pick(2);
        int64_t length = (extent.constant() - start + step - 1) / step;
        return builder_.slice(a, dim, number(start), number(length), step);
      }
    }
  }

  std::optional<ValueId> concatenation() {
    ValueId a = any();
    if (shape(a).empty()) return std::nullopt;
    int64_t dim = pick(static_cast<int>(shape(a).size()));
    ValueId b = chance(50) ? builder_.flip(a, {dim}) : builder_.apply(ops::ScalarOp::neg, {a});
    std::vector<Expr> dims = shape(a);
    dims[static_cast<size_t>(dim)] = dims[static_cast<size_t>(dim)] * 2;
    graph::TensorType type{DType::f64, dims, graph::contiguous_strides(context_, dims), {}};
    return builder_.node(graph::Op::cat, {a, b}, {{graph::Attr::dim, dim}}, {type})[0];
  }

  // Two equal pieces of a value change places: a cat of slices, or slices padded and added, as in the gradient of one.
  std::optional<ValueId> rotated() {
    ValueId a = any();
    if (shape(a).empty()) return std::nullopt;
    int64_t dim = pick(static_cast<int>(shape(a).size()));
    Expr extent = shape(a)[static_cast<size_t>(dim)];
    if (!extent.is_constant() || extent.constant() % 2 != 0 || extent.constant() == 0) return std::nullopt;
    Expr half = number(extent.constant() / 2), zero = number(0);
    ValueId low = builder_.slice(a, dim, zero, half, 1);
    ValueId high = builder_.apply(ops::ScalarOp::neg, {builder_.slice(a, dim, half, half, 1)});
    graph::TensorType type{DType::f64, shape(a), graph::contiguous_strides(context_, shape(a)), {}};
    ValueId turned;
    if (chance(50)) {
      turned = builder_.node(graph::Op::cat, {high, low}, {{graph::Attr::dim, dim}}, {type})[0];
    } else {
      auto padded = [&](ValueId value, Expr before, Expr after) {
        std::vector<Expr> lows(shape(a).size(), zero), highs = lows;
        lows[static_cast<size_t>(dim)] = before;
        highs[static_cast<size_t>(dim)] = after;
        return builder_.node(graph::Op::pad, {value},
                             {{graph::Attr::value, Scalar::of(DType::f64, 0)},
                              {graph::Attr::low, lows},
                              {graph::Attr::high, highs}},
                             {type})[0];
      };
      turned = builder_.apply(ops::ScalarOp::add, {padded(high, zero, half), padded(low, half, zero)});
    }
    return builder_.apply(ops::ScalarOp::sub, {turned, a});
  }

  std::optional<ValueId> indexed() {
    ValueId a = any();
    for (size_t d = 0; d < shape(a).size(); ++d) {
      if (shape(a)[d].is_constant() && shape(a)[d].constant() < kIndexBound) continue;
      std::vector<Expr> dims = shape(a);
      dims[d] = number(5);
      graph::TensorType type{DType::f64, dims, graph::contiguous_strides(context_, dims), {}};
      std::vector<int64_t> indexed_dims{static_cast<int64_t>(d)};
      return builder_.node(graph::Op::index, {a, index_},
                           {{graph::Attr::dim, static_cast<int64_t>(d)},
                            {graph::Attr::dims, indexed_dims},
                            {graph::Attr::wrap, false}},
                           {type})[0];
    }
    return std::nullopt;
  }

  void make_outputs() {
    size_t count = 1 + static_cast<size_t>(pick(3));
    for (size_t i = 0; i < count && i < values_.size(); ++i) {
      graph::Output output;
      output.kind = graph::Output::Kind::tensor;
      output.value = values_[values_.size() - 1 -
                             (i == 0 ? 0 : static_cast<size_t>(pick(static_cast<int>(values_.size()))))];
      graph_.outputs.push_back(output);
    }
  }

  sym::Context& context_;
  std::mt19937_64 random_;
  RandomGraphOptions options_;
  graph::Graph graph_;
  graph::Builder builder_;
  std::vector<ValueId> values_;
  ValueId index_;
  Expr size_;
};

}  // namespace

graph::Graph random_graph(sym::Context& context, uint64_t seed, const RandomGraphOptions& options) {
  return Generator(context, seed, options).run();
}

std::vector<Scalar> random_input(uint64_t seed, DType dtype, int64_t elements, int64_t bound) {
  std::mt19937_64 random(seed);
  std::vector<Scalar> data;
  for (int64_t i = 0; i < elements; ++i) {
    if (is_floating(dtype)) {
      data.push_back(Scalar::of(dtype, static_cast<double>(random() % 17) - 8));
    } else {
      data.push_back(Scalar::of_int(dtype, static_cast<int64_t>(random() % static_cast<uint64_t>(bound))));
    }
  }
  return data;
}

}  // namespace kerf::testing
