#include "base/check.h"
#include "ops/eval.h"

namespace kerf::ops {

namespace {

int width(DType dtype) { return dtype == DType::b1 ? 1 : 8 * byte_size(dtype); }

bool outside(int64_t count, DType dtype) { return count < 0 || count >= width(dtype); }

// -1, 0 or 1; 2 when a NaN makes the operands unordered.
int compare(const Scalar& a, const Scalar& b) {
  if (!is_floating(a.dtype)) return (a.i > b.i) - (a.i < b.i);
  if (a.f != a.f || b.f != b.f) return 2;
  return (a.f > b.f) - (a.f < b.f);
}

}  // namespace

Scalar eval_and(DType result, Operands x) { return Scalar::of_int(result, x[0].i & x[1].i); }
Scalar eval_or(DType result, Operands x) { return Scalar::of_int(result, x[0].i | x[1].i); }
Scalar eval_xor(DType result, Operands x) { return Scalar::of_int(result, x[0].i ^ x[1].i); }

Scalar eval_not(DType result, Operands x) {
  return Scalar::of_int(result, result == DType::b1 ? !x[0].i : ~x[0].i);
}

Scalar eval_shift_left(DType result, Operands x) {
  if (outside(x[1].i, result)) return Scalar::of_int(result, 0);
  return Scalar::of_int(result, static_cast<int64_t>(static_cast<uint64_t>(x[0].i) << x[1].i));
}

// Operands are stored sign- or zero-extended, so an arithmetic shift of the 64 bits fits every type.
Scalar eval_shift_right(DType result, Operands x) {
  return Scalar::of_int(result, x[0].i >> (outside(x[1].i, result) ? 63 : x[1].i));
}

Scalar eval_eq(DType result, Operands x) { return Scalar::of_int(result, compare(x[0], x[1]) == 0); }
Scalar eval_ne(DType result, Operands x) { return Scalar::of_int(result, compare(x[0], x[1]) != 0); }
Scalar eval_lt(DType result, Operands x) { return Scalar::of_int(result, compare(x[0], x[1]) == -1); }
Scalar eval_gt(DType result, Operands x) { return Scalar::of_int(result, compare(x[0], x[1]) == 1); }
Scalar eval_le(DType result, Operands x) {
  int order = compare(x[0], x[1]);
  return Scalar::of_int(result, order == -1 || order == 0);
}
Scalar eval_ge(DType result, Operands x) {
  int order = compare(x[0], x[1]);
  return Scalar::of_int(result, order == 1 || order == 0);
}

Scalar eval_where(DType, Operands x) { return x[0].i ? x[1] : x[2]; }

Scalar eval_cast(DType result, Operands x) { return convert(x[0], result); }

Scalar eval_bitcast(DType result, Operands x) {
  CHECK(byte_size(result) == byte_size(x[0].dtype), "bitcast from {} to {}", to_text(x[0].dtype),
        to_text(result));
  char memory[8];
  store_scalar(memory, 0, x[0]);
  return load_scalar(memory, 0, result);
}

}  // namespace kerf::ops
