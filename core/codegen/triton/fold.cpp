// Folds: of whole tiles at once, or with an accumulator tile from tile to tile.
#include <algorithm>
#include <limits>

#include "codegen/triton/emission.h"

namespace kerf::codegen::triton {

using ops::ReduceOp;

namespace {

bool is_bool_fold(ReduceOp op) { return op == ReduceOp::any || op == ReduceOp::all; }

// The dims of a reduce's axes.
Dims dims_of(const Emission& e, const loop::Reduce& reduce) {
  Dims dims = 0;
  for (loop::AxisId axis : reduce.axes)
    if (auto dim = e.dim_of[e.coordinates.of[axis]]) dims |= e.bit(*dim);
  return dims;
}

bool is_walked(const Emission& e, const loop::Reduce& reduce) {
  return std::any_of(reduce.axes.begin(), reduce.axes.end(), [&](loop::AxisId axis) {
    auto dim = e.dim_of[e.coordinates.of[axis]];
    return !dim || !e.dims[*dim].axis.whole;
  });
}

// One dimension folded, of an expression.
std::string along(Emission& e, ReduceOp op, DType dtype, const std::string& tile, size_t dim) {
  auto call = [&](std::string_view function) {
    return fmt::format("tl.{}({}, axis={})", function, tile, dim);
  };
  auto with = [&](const std::string& function) {
    e.need(function);
    return fmt::format("tl.reduce({}, {}, {})", tile, dim, function);
  };
  // Triton's max and min pass over NaN. Ascend has no other fold that is a vector operation (see with_nan).
  bool is_plain = e.dialect == Dialect::ascend || !is_floating(dtype);
  switch (op) {
    case ReduceOp::sum: return call("sum");
    case ReduceOp::max: return is_plain ? call("max") : with("kerf_max");
    case ReduceOp::min: return is_plain ? call("min") : with("kerf_min");
    case ReduceOp::any: return call("max");
    case ReduceOp::all: return call("min");
    case ReduceOp::prod: return with("kerf_product");
    default: UNREACHABLE("fold {} has an index", ops::to_text(op));
  }
}

// A fold of max or min that is NaN where the tile has one.
std::string with_nan(Emission& e, const Tile& tile, const std::string& extremum, Dims over) {
  Tile marks{e.define("nan", fmt::format("tl.where({0} != {0}, 1.0, 0.0)", tile.text)), tile.dims};
  std::string any = e.define("any_nan", folded(e, ReduceOp::any, marks, DType::f32, over));
  return fmt::format("tl.where({} > 0.0, float(\"nan\"), {})", any, extremum);
}

struct Part {
  const loop::Reduction* reduction;
  Scalar identity;
  std::string accumulator;  // of a walked fold
  std::string index;        // the second one of a fold with an index
  Dims dims = 0;            // of the accumulator
};

class Fold {
 public:
  Fold(Emission& e, const loop::Reduce& reduce) : e_(e), reduce_(reduce), over_(dims_of(e, reduce)) {
    for (const loop::Reduction& reduction : reduce.parts) {
      const ops::ReduceInfo& info = ops::info(reduction.op);
      DType dtype = e.kernel.values[reduction.yields[0]].dtype;
      if (info.has_index() && (reduction.op == ReduceOp::argmax_last_nan || !is_floating(dtype)))
        e.refuse(fmt::format("fold {} over {}", info.text, to_text(dtype)));
      parts_.push_back({&reduction, ops::identity(reduction.op, dtype)});
    }
  }

  void run() {
    if (!is_walked(e_, reduce_)) {
      emit_block(e_, reduce_.body);
      for (Part& part : parts_) finish_whole(part);
      return;
    }
    size_t start = e_.lines.size();
    for (Part& part : parts_) {
      part.accumulator = e_.names.give(ops::to_text(part.reduction->op));
      if (ops::info(part.reduction->op).has_index()) part.index = e_.names.give(part.accumulator + "_at");
    }
    run_axes(e_, reduce_.axes, [&] {
      emit_block(e_, reduce_.body);
      for (Part& part : parts_) step(part);
    });
    // The accumulators' shapes are known only now.
    std::vector<std::string> starts;
    std::string margin(e_.indent * 4, ' ');
    for (Part& part : parts_) {
      starts.push_back(margin + part.accumulator + " = " + accumulator(e_, part.dims, part.identity));
      if (!part.index.empty())
        starts.push_back(margin + fmt::format("{} = tl.full({}, {}, {})", part.index, e_.shape(part.dims),
                                              no_index(part), dtype_text(index_dtype(part))));
    }
    e_.lines.insert(e_.lines.begin() + static_cast<std::ptrdiff_t>(start), starts.begin(), starts.end());
    for (Part& part : parts_) finish_walked(part);
  }

 private:
  const Tile& yield(const Part& part, size_t k) const { return e_.values[part.reduction->yields[k]]; }
  DType index_dtype(const Part& part) const { return yield(part, 1).is_narrow ? DType::i32 : DType::i64; }
  // Where a fold with an index has met nothing: no index that the kernel may have.
  Scalar missing(const Part& part) const {
    bool is_wide = e_.wide && index_dtype(part) == DType::i64;
    return is_wide ? Scalar::of_int(DType::i64, std::numeric_limits<int64_t>::max())
                   : Scalar::of_int(DType::i32, std::numeric_limits<int32_t>::max());
  }
  std::string no_index(const Part& part) const { return literal_text(missing(part)); }
  DType dtype(const Part& part) const { return e_.kernel.values[part.reduction->yields[0]].dtype; }

  Tile as_number(const Part& part, Tile tile) {
    if (tile.in_float) e_.refuse("where on 64-bit integers that are folded");
    if (!is_bool_fold(part.reduction->op)) return tile;
    if (tile.literal) return {tile.literal->i ? "1" : "0", 0};
    return {e_.define("flag", tile.text + ".to(tl.int32)"), tile.dims};
  }
  Scalar number_identity(const Part& part) const {
    return is_bool_fold(part.reduction->op) ? Scalar::of_int(DType::i32, part.identity.i) : part.identity;
  }

  void bind(const Part& part, const std::string& text, Dims dims) {
    std::string result = is_bool_fold(part.reduction->op) ? text + " != 0" : text;
    e_.values[part.reduction->result] = {e_.define(ops::to_text(part.reduction->op), result), dims};
  }

  std::string extremum_or_sum(const Part& part, const Tile& tile) {
    ReduceOp op = part.reduction->op;
    std::string text = folded(e_, op, tile, dtype(part), over_);
    return loses_nan(op, dtype(part)) && !shows_nan_anyway(e_, *part.reduction)
               ? with_nan(e_, tile, text, over_)
               : text;
  }
  bool loses_nan(ReduceOp op, DType dtype) const {
    return e_.dialect == Dialect::ascend && is_floating(dtype) && over_ != 0 &&
           (op == ReduceOp::max || op == ReduceOp::min);
  }

  void finish_whole(Part& part) {
    if (ops::info(part.reduction->op).has_index()) {
      Tile value = yield(part, 0), index = yield(part, 1);
      Dims dims = value.dims | index.dims | over_;
      value = masked_by_identity(e_, value, dims, over_, part.identity);
      return finish_indexed(part, value, index, over_);
    }
    Tile value = as_number(part, yield(part, 0));
    Tile masked = masked_by_identity(e_, value, value.dims | over_, over_, number_identity(part));
    bind(part, extremum_or_sum(part, masked), masked.dims & ~over_);
  }

  void step(Part& part) {
    const ops::ReduceInfo& info = ops::info(part.reduction->op);
    Tile value = as_number(part, yield(part, 0));
    part.dims = value.dims | over_;
    if (info.has_index()) part.dims |= yield(part, 1).dims;
    Tile masked = masked_by_identity(e_, value, part.dims, over_, number_identity(part));
    if (!info.has_index()) {
      e_.line(part.accumulator + " = " +
              combined(part.reduction->op, dtype(part), part.accumulator, masked.text));
      return;
    }
    const char* better = ops::seeks_largest(part.reduction->op) ? ">" : "<";
    std::string mask = e_.mask(over_);
    std::string wins =
        e_.define("wins", fmt::format("({0} {1} {2}) | (({0} != {0}) & ({2} == {2})) | ({3} == {4})",
                                      masked.text, better, part.accumulator, part.index, no_index(part)));
    std::string inside = mask.empty() ? wins : e_.define("wins", fmt::format("({}) & {}", mask, wins));
    e_.line(fmt::format("{0} = tl.where({1}, {2}, {0})", part.index, inside, yield(part, 1).text));
    e_.line(fmt::format("{0} = tl.where({1}, {2}, {0})", part.accumulator, inside, masked.text));
  }

  void finish_walked(Part& part) {
    Tile tile{part.accumulator, part.dims};
    if (ops::info(part.reduction->op).has_index())
      return finish_indexed(part, tile, {part.index, part.dims}, 0);
    bind(part, extremum_or_sum(part, tile), part.dims & ~over_);
  }

  // The first index whose value is the extremum, or the first NaN. Along `masked` there may be points outside the domain.
  void finish_indexed(Part& part, const Tile& value, const Tile& index, Dims masked) {
    ReduceOp op = part.reduction->op;
    Dims dims = value.dims | index.dims | over_;
    ReduceOp extremum = ops::seeks_largest(op) ? ReduceOp::max : ReduceOp::min;
    std::string best = folded(e_, extremum, value, dtype(part), over_);
    if (loses_nan(extremum, dtype(part))) best = with_nan(e_, value, best, over_);
    best = e_.define("best", best);
    std::string hit = e_.define("hit", fmt::format("({0} == {1}) | ({0} != {0})", value.text, best));
    Tile candidates{e_.define("at", fmt::format("tl.where({}, {}, {})", hit, index.text, no_index(part))),
                    dims};
    if (!e_.mask(masked).empty())
      candidates = masked_by_identity(e_, candidates, dims, masked, missing(part));
    std::string first = e_.define("first", folded(e_, ReduceOp::min, candidates, DType::i32, over_));
    if (ops::info(op).index_result) {
      e_.values[part.reduction->result] = {first, dims & ~over_};
      return;
    }
    // The value there: of equal zeros the first one's sign.
    std::string chosen =
        e_.define("chosen", fmt::format("tl.where({} == {}, {}, 0.0)", candidates.text, first, value.text));
    e_.values[part.reduction->result] = {
        e_.define(ops::to_text(op), folded(e_, ReduceOp::sum, {chosen, dims}, dtype(part), over_)),
        dims & ~over_};
  }

  Emission& e_;
  const loop::Reduce& reduce_;
  const Dims over_;
  std::vector<Part> parts_;
};

}  // namespace

Tile masked_by_identity(Emission& e, const Tile& tile, Dims dims, Dims masked, const Scalar& identity) {
  std::string mask = e.mask(masked);
  std::string value = tile.text;
  if (!mask.empty()) {
    value = fmt::format("tl.where({}, {}, {})", mask, value, literal_text(identity));
    if (tile.dims != dims) value = fmt::format("tl.broadcast_to({}, {})", value, e.shape(dims));
    return {e.define("inside", value), dims};
  }
  if (tile.dims == dims) return tile;
  if (tile.literal || tile.dims == 0)
    return {e.define("spread",
                     fmt::format("tl.full({}, {}, {})", e.shape(dims), value, dtype_text(identity.dtype))),
            dims};
  return {e.define("spread", fmt::format("tl.broadcast_to({}, {})", value, e.shape(dims))), dims};
}

std::string accumulator(Emission& e, Dims dims, const Scalar& identity) {
  DType dtype = identity.dtype == DType::b1 ? DType::i32 : identity.dtype;
  std::string text = identity.dtype == DType::b1    ? fmt::format("{}", identity.i)
                     : identity.dtype == DType::f64 ? literal_text(Scalar::of(DType::f32, identity.f))
                                                    : literal_text(identity);
  return fmt::format("tl.full({}, {}, {})", e.shape(dims), text, dtype_text(dtype));
}

std::string combined(ReduceOp op, DType dtype, const std::string& a, const std::string& b) {
  switch (op) {
    case ReduceOp::sum: return a + " + " + b;
    case ReduceOp::prod: return a + " * " + b;
    case ReduceOp::any: return fmt::format("tl.maximum({}, {})", a, b);
    case ReduceOp::all: return fmt::format("tl.minimum({}, {})", a, b);
    case ReduceOp::max:
    case ReduceOp::min: {
      const char* function = op == ReduceOp::max ? "maximum" : "minimum";
      const char* nan = is_floating(dtype) ? ", propagate_nan=tl.PropagateNan.ALL" : "";
      return fmt::format("tl.{}({}, {}{})", function, a, b, nan);
    }
    default: UNREACHABLE("fold {} has an index", ops::to_text(op));
  }
}

std::string folded(Emission& e, ReduceOp op, const Tile& tile, DType dtype, Dims over) {
  Dims kept = tile.dims & ~over;
  if (over == 0) return tile.text;
  std::string text = tile.text;
  // Nothing is kept: all dimensions go, those of size 1 too, and a scalar is left.
  for (size_t d = e.dims.size(); d-- > 0;)
    if (kept == 0 || (over & e.bit(d))) text = along(e, op, dtype, text, d);
  if (kept == 0) return text;
  return text + e.subscript(~over);
}

void emit_reduce(Emission& e, const loop::Reduce& reduce) { Fold(e, reduce).run(); }

}  // namespace kerf::codegen::triton
