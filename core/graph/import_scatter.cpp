// Indexed writes, on a copy of the data. Sums of f16 and bf16 are taken in f32 and rounded once.
#include <algorithm>
#include <limits>

#include "graph/import_call.h"

namespace kerf::graph {

namespace {

struct Update {
  bool accumulate;
  bool wrap;
};

Term index_put(const Term& data, const Term& values, const Indices& indices, Update update) {
  DType dtype = update.accumulate ? compute_dtype(data.dtype()) : data.dtype();
  std::vector<ValueId> operands = {data.in(dtype), values.in(dtype)};
  operands.insert(operands.end(), indices.tensors.begin(), indices.tensors.end());
  ValueId put = data.builder().node(Op::index_put, std::move(operands),
                                    {{Attr::dims, indices.dims},
                                     {Attr::wrap, update.wrap},
                                     {Attr::dim, indices.at},
                                     {Attr::accumulate, update.accumulate}},
                                    {})[0];
  return Term(data.builder(), put).in(data.dtype());
}

// Along one dimension with a list of positions.
Indices along(const ImportCall& call, int64_t dim, const Term& index) {
  const TensorType& type = index.type();
  ValueId list = type.rank() ? index.value() : call.builder.unsqueeze(index, 0);
  return {.tensors = {list}, .dims = {dim}, .at = dim};
}

// A bool mask over the leading dimensions with one value for all: a where.
std::optional<Imported> masked_put(const ImportCall& call, bool accumulate) {
  const auto& list = std::get<ArgumentList>(call.argument(1).value);
  const auto* tensor = list.size() == 1 ? std::get_if<ValueId>(&list[0].value) : nullptr;
  if (!tensor || call.builder.type(*tensor).dtype != DType::b1) return std::nullopt;
  Term data = call.tensor(0), values = call.tensor(2);
  if (!sym::product(call.context(), values.type().shape).is_constant(1)) return std::nullopt;
  if (accumulate && data.dtype() == DType::b1) return std::nullopt;
  Shape shape = call.builder.type(*tensor).shape;
  shape.resize(data.type().rank(), call.constant(1));
  Term mask = call.term(call.builder.reshape(*tensor, shape));
  Term value = call.term(call.builder.reshape(values, {})).in(data.dtype());
  Term updated = accumulate ? (data.computing() + value.computing()).in(data.dtype()) : value;
  return one(where(mask, updated, data));
}

}  // namespace

// self, indices, values, accumulate
Imported import_index_put(const ImportCall& call) {
  bool accumulate = call.boolean(3, false);
  if (std::optional<Imported> masked = masked_put(call, accumulate)) return *masked;
  Result<Indices> indices = read_indices(call, 1);
  if (!indices) return Unsupported{indices.reason()};
  Term data = call.tensor(0), values = call.tensor(2);
  if (values.dtype() != data.dtype()) return decline("values of another dtype, which torch refuses");
  if (accumulate && data.dtype() == DType::b1) return decline("sums of bool");
  return one(index_put(data, values, *indices, {.accumulate = accumulate, .wrap = true}));
}

// self, dim, index, source[, alpha]: `flag` 1 adds, 0 copies.
Imported import_index_add(const ImportCall& call) {
  Term data = call.tensor(0), index = call.tensor(2).in(DType::i64), source = call.tensor(3);
  if (data.type().rank() == 0) return decline("of a 0-d tensor");
  bool add = call.row.flag == 1;
  if (add && data.dtype() == DType::b1) return decline("sums of bool");
  source = source.in(data.dtype());
  if (add && !call.is_none(4) && (call.is_symbolic(4) || call.number(4) != 1))
    source = source.computing() * call.operand(4, compute_dtype(data.dtype()));
  if (source.type().rank() == 0) source = call.term(call.builder.unsqueeze(source, 0));
  return one(index_put(data, source, along(call, call.dim(1, data.type().rank()), index),
                       {.accumulate = add, .wrap = false}));
}

// self, dim, index, value
Imported import_index_fill(const ImportCall& call) {
  Term data = call.tensor(0), index = call.tensor(2).in(DType::i64);
  if (data.type().rank() == 0) return decline("of a 0-d tensor");
  Indices indices = along(call, call.dim(1, data.type().rank()), index);
  return one(index_put(data, call.operand(3, data.dtype()), indices, {.accumulate = false, .wrap = true}));
}

namespace {

// Data with a source of the index's shape or larger written into it; without indices, the source may have any shape. Sums,
// products and extrema of halves are f32.
Result<Term> scattered(const ImportCall& call, Term data, Term source, const std::string& mode) {
  Term index = call.tensor(2).in(DType::i64);
  int64_t dim = call.dim(1, data.type().rank());
  DType dtype = mode == "assign" ? data.dtype() : compute_dtype(data.dtype());
  if (mode != "assign" && dtype == DType::b1) return decline("{} of bool", mode);
  if (std::ranges::any_of(index.type().shape, [](sym::Expr extent) { return extent.is_constant(0); }))
    return call.term(call.builder.copy(data, dtype));
  auto ranked = [&](Term term) {
    return term.type().rank() ? term : call.term(call.builder.unsqueeze(term, 0));
  };
  data = ranked(data), index = ranked(index), source = ranked(source);
  if (index.type().rank() != data.type().rank() || index.type().rank() != source.type().rank())
    return decline("an index of another rank");
  for (size_t i = 0; i < index.type().rank(); ++i)
    source = call.term(
        call.builder.slice(source, static_cast<int64_t>(i), call.constant(0), index.type().shape[i], 1));
  ValueId out = call.builder.node(Op::scatter, {data.in(dtype), index, source.in(dtype)},
                                  {{Attr::dim, dim}, {Attr::mode, mode}}, {})[0];
  return call.term(call.builder.reshape(out, call.result().shape));
}

Imported scatter(const ImportCall& call, const Term& source, const std::string& mode) {
  Result<Term> out = scattered(call, call.tensor(0), source, mode);
  return out ? rounded(call, *out) : Imported(Unsupported{out.reason()});
}

// The same number wherever an index points.
Result<Term> with_number(const ImportCall& call, const Term& data, Scalar number, const std::string& mode) {
  Term value = call.term(call.builder.constant(number));
  return scattered(call, data, call.term(call.builder.expand(value, call.tensor(2).type().shape)), mode);
}

// How a mode of torch's scatter_reduce is folded.
struct Fold {
  std::string mode;
  ops::ReduceOp reduce;
};

Result<Fold> fold_of(const std::string& reduce) {
  if (reduce == "sum" || reduce == "mean") return Fold{"add", ops::ReduceOp::sum};
  if (reduce == "prod") return Fold{"multiply", ops::ReduceOp::prod};
  if (reduce == "amax") return Fold{"amax", ops::ReduceOp::max};
  if (reduce == "amin") return Fold{"amin", ops::ReduceOp::min};
  return decline("a reduction {}", reduce);
}

// Sums divided by how many elements went into each; of integers, rounded down.
Imported divided_by_counts(const ImportCall& call, const Term& total, bool with_self) {
  Term start = call.term(call.builder.full(total.type().shape, Scalar::of(total.dtype(), with_self ? 1 : 0)));
  Result<Term> counts = with_number(call, start, Scalar::of(total.dtype(), 1), "add");
  if (!counts) return Unsupported{counts.reason()};
  Term each = with_self ? *counts : maximum(*counts, 1.0);
  return rounded(call,
                 is_floating(total.dtype()) ? total / each : apply(ops::ScalarOp::floor_div, total, each));
}

}  // namespace

// scatter.src (`flag` 0), scatter_add (1): self, dim, index, src
Imported import_scatter(const ImportCall& call) {
  Term source = call.tensor(3);
  return scatter(call, source.in(call.result().dtype), call.row.flag ? "add" : "assign");
}

// self, dim, index, value
Imported import_scatter_value(const ImportCall& call) {
  Term value = call.operand(3, call.result().dtype);
  return scatter(call, call.term(call.builder.expand(value, call.tensor(2).type().shape)), "assign");
}

// self, dim, index, src, reduce, include_self. Without self, elements that an index points at begin at the fold's identity.
Imported import_scatter_reduce(const ImportCall& call) {
  Term data = call.tensor(0);
  bool with_self = call.boolean(5, true);
  Result<Fold> fold = fold_of(call.string(4));
  if (!fold) return Unsupported{fold.reason()};
  if (data.dtype() == DType::b1) return decline("of bool");
  data = data.computing();
  if (!with_self) {
    Result<Term> begun = with_number(call, data, ops::identity(fold->reduce, data.dtype()), "assign");
    if (!begun) return Unsupported{begun.reason()};
    data = *begun;
  }
  Result<Term> out = scattered(call, data, call.tensor(3).in(call.result().dtype), fold->mode);
  if (!out) return Unsupported{out.reason()};
  return call.string(4) == "mean" ? divided_by_counts(call, *out, with_self) : rounded(call, *out);
}

// self, bins, min, max: how many elements lie in each of equal parts of [min, max], which the last of them contains.
// NaN is in none.
Imported import_histc(const ImportCall& call) {
  Term x = call.tensor(0);
  if (!is_floating(x.dtype()) || compute_dtype(x.dtype()) != x.dtype())
    return decline("of {}", to_text(x.dtype()));
  auto bound = [&](size_t i) { return Scalar::of(x.dtype(), call.number(i)).f; };
  double low = bound(2), width = Scalar::of(x.dtype(), bound(3) - low).f;
  if (!(width > 0 && width <= std::numeric_limits<double>::max())) return decline("bounds that the data say");
  auto bins = static_cast<double>(call.integer(1));
  Term flat = call.term(call.builder.reshape(x, {sym::product(call.context(), x.type().shape)}));
  Term above = greater_equal(flat, low), below = less_equal(flat, bound(3));
  Term inside = both(above, below);
  Term place = where(inside, (flat - low) * bins / width, 0.0).in(DType::i64);
  Term none = call.term(call.builder.full(call.result().shape, Scalar::of(x.dtype(), 0)));
  Indices parts{.tensors = {minimum(place, bins - 1)}, .dims = {0}, .at = 0};
  return one(index_put(none, inside.in(x.dtype()), parts, {.accumulate = true, .wrap = false}));
}

}  // namespace kerf::graph
