// Integers on Ascend, whose vector unit compares floats, computes with 32 bits and runs 64-bit lanes one by one.
//
//   * Indices have 32 bits there (Tile::is_narrow).
//   * Tiles of 64-bit integers are compared and chosen in f32 (Tile::in_float). Rounding keeps order, and all integers up to 2^24
//     are floats, so that a label of any size compares with such a one as it should; two labels do not.
//   * Scalars of 64 bits run on the scalar unit, as they stand.
#include "codegen/triton/emission.h"
#include "sym/simplify.h"

namespace kerf::codegen::triton {

using loop::ValueKind;
using ops::ScalarOp;
using ops::Typing;

namespace {

constexpr int64_t kExact = int64_t{1} << 24;  // integers up to here are floats

bool is_wide(const Emission& e, loop::ValueId id, const Tile& tile) {
  return e.kernel.values[id].dtype == DType::i64 && !tile.is_narrow && !tile.literal;
}

// Whether all values are floats.
bool is_exact(const Emission& e, loop::ValueId id) {
  const loop::Value& value = e.kernel.values[id];
  if (byte_size(value.dtype) <= 2) return true;
  if (value.kind == ValueKind::constant) return -kExact <= value.literal.i && value.literal.i <= kExact;
  if (value.kind == ValueKind::index) {
    sym::Range range = sym::range_of(value.index, e.facts);
    return range.lo && range.hi && -kExact <= *range.lo && *range.hi <= kExact;
  }
  if (value.kind != ValueKind::apply) return false;
  if (value.op == ScalarOp::where) return is_exact(e, value.operands[1]) && is_exact(e, value.operands[2]);
  return ops::info(value.op).types == Typing::index_check && is_exact(e, value.operands[1]);
}

std::string in_float(const Tile& tile) {
  if (tile.in_float) return tile.text;
  return tile.literal ? literal_text(Scalar::of(DType::f32, static_cast<double>(tile.literal->i)))
                      : tile.text + ".to(tl.float32)";
}

// Brings operands from `first` on to floats, if at most one of them is rounded by that.
bool to_floats(const Emission& e, const loop::Value& value, std::vector<Tile>& x, size_t first) {
  int rounded = 0;
  for (size_t i = first; i < x.size(); ++i) rounded += !is_exact(e, value.operands[i]);
  if (rounded > 1) return false;
  for (size_t i = first; i < x.size(); ++i) x[i].text = in_float(x[i]);
  return true;
}

bool fit_comparison(const Emission& e, const loop::Value& value, std::vector<Tile>& x) {
  const DType dtype = e.kernel.values[value.operands[0]].dtype;
  if (is_floating(dtype) || dtype == DType::b1) return true;
  if ((x[0].dims | x[1].dims) == 0) return true;
  bool wide = is_wide(e, value.operands[0], x[0]) || is_wide(e, value.operands[1], x[1]);
  bool has_equality = value.op == ScalarOp::eq || value.op == ScalarOp::ne;
  return (has_equality && !wide) || to_floats(e, value, x, 0) || !wide;
}

// What comes out of choosing between 64-bit integers. Scalars and numbers are spread as they are.
void fit_choice(const Emission& e, const loop::Value& value, std::vector<Tile>& x, Tile& result) {
  auto fits = [](const Tile& tile) {
    return tile.is_narrow || (tile.literal && tile.literal->i == static_cast<int32_t>(tile.literal->i));
  };
  auto is_wide_tile = [&](size_t i) { return x[i].dims && is_wide(e, value.operands[i], x[i]); };
  result.is_narrow = (x[1].is_narrow || x[2].is_narrow) && fits(x[1]) && fits(x[2]);
  result.in_float = is_wide_tile(1) || is_wide_tile(2);
  if (!result.in_float) return;
  for (size_t i : {1, 2}) x[i].text = in_float(x[i]);
}

}  // namespace

void fit_integers(Emission& e, const loop::Value& value, std::vector<Tile>& x, Tile& result) {
  bool fits = true;
  if (ops::info(value.op).types == Typing::comparison) {
    fits = fit_comparison(e, value, x);
  } else if (value.op == ScalarOp::where) {
    if (value.dtype == DType::i64) fit_choice(e, value, x, result);
  } else if (value.op == ScalarOp::cast) {
    if (x[0].dims && is_wide(e, value.operands[0], x[0])) {
      fits = value.dtype == DType::f32 || value.dtype == DType::b1;
      x[0].text = in_float(x[0]);
    }
  } else {
    for (size_t i = 0; i < x.size(); ++i)
      if (e.kernel.values[value.operands[i]].dtype == DType::i64 && (x[i].dims || x[i].is_narrow))
        fits = false;
  }
  if (!fits) e.refuse(fmt::format("{} on 64-bit integers", ops::to_text(value.op)));
}

}  // namespace kerf::codegen::triton
