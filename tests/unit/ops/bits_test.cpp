// Expected values are what torch 2.13 gives on the CPU.
#include <doctest/doctest.h>

#include <cstring>

#include "apply.h"

namespace kerf::ops {
namespace {

TEST_CASE("bitwise operations, logical on bool") {
  CHECK_EQ(apply_integers(ScalarOp::and_, DType::i8, {-1, 0x55}), 0x55);
  CHECK_EQ(apply_integers(ScalarOp::or_, DType::u8, {0x80, 1}), 0x81);
  CHECK_EQ(apply_integers(ScalarOp::xor_, DType::u8, {0xff, 0x0f}), 0xf0);
  CHECK_EQ(apply_integers(ScalarOp::not_, DType::u8, {0}), 255);
  CHECK_EQ(apply_integers(ScalarOp::not_, DType::i64, {0}), -1);
  CHECK_EQ(apply_integers(ScalarOp::not_, DType::b1, {0}), 1);
  CHECK_EQ(apply_integers(ScalarOp::not_, DType::b1, {1}), 0);
  CHECK_EQ(apply_integers(ScalarOp::xor_, DType::b1, {1, 1}), 0);
}

TEST_CASE("shifts by counts inside and outside the width") {
  struct Case {
    DType dtype;
    int64_t value, count, left, right;
  };
  using enum DType;
  for (const Case& c :
       {Case{i8, 5, 1, 10, 2}, Case{i8, 5, 7, -128, 0}, Case{i8, 5, 8, 0, 0}, Case{i8, 5, -1, 0, 0},
        Case{i8, -128, 7, 0, -1}, Case{i8, -128, 1, 0, -64}, Case{i8, -1, 100, 0, -1},
        Case{i8, -1, -3, 0, -1}, Case{u8, 255, 7, 128, 1}, Case{u8, 255, 8, 0, 0}, Case{u8, 255, 0, 255, 255},
        Case{i32, 1, 31, INT32_MIN, 0}, Case{i32, INT32_MIN, 32, 0, -1}, Case{i64, -1, 63, INT64_MIN, -1},
        Case{i64, INT64_MAX, 64, 0, 0}, Case{i64, INT64_MIN, -1, 0, -1}}) {
    CAPTURE(to_text(c.dtype));
    CAPTURE(c.value);
    CAPTURE(c.count);
    CHECK_EQ(apply_integers(ScalarOp::shift_left, c.dtype, {c.value, c.count}), c.left);
    CHECK_EQ(apply_integers(ScalarOp::shift_right, c.dtype, {c.value, c.count}), c.right);
  }
}

TEST_CASE("comparisons; NaN is only unequal") {
  struct Case {
    double a, b;
    bool eq, ne, lt, le, gt, ge;
  };
  for (const Case& c :
       {Case{1, 2, false, true, true, true, false, false}, Case{2, 1, false, true, false, false, true, true},
        Case{0.0, -0.0, true, false, false, true, false, true},
        Case{kInf, kInf, true, false, false, true, false, true},
        Case{kNan, 1, false, true, false, false, false, false},
        Case{kNan, kNan, false, true, false, false, false, false}}) {
    CAPTURE(c.a);
    CAPTURE(c.b);
    CHECK_EQ(apply(ScalarOp::eq, DType::f32, {c.a, c.b}), c.eq);
    CHECK_EQ(apply(ScalarOp::ne, DType::f32, {c.a, c.b}), c.ne);
    CHECK_EQ(apply(ScalarOp::lt, DType::f32, {c.a, c.b}), c.lt);
    CHECK_EQ(apply(ScalarOp::le, DType::f32, {c.a, c.b}), c.le);
    CHECK_EQ(apply(ScalarOp::gt, DType::f32, {c.a, c.b}), c.gt);
    CHECK_EQ(apply(ScalarOp::ge, DType::f32, {c.a, c.b}), c.ge);
  }
  CHECK_EQ(apply_integers(ScalarOp::gt, DType::u8, {200, 100}), 1);
  CHECK_EQ(apply_integers(ScalarOp::lt, DType::i64, {INT64_MAX - 1, INT64_MAX}), 1);
  CHECK_EQ(apply_integers(ScalarOp::lt, DType::b1, {0, 1}), 1);
}

TEST_CASE("where keeps the chosen element's bits") {
  for (DType dtype : {DType::bf16, DType::f64, DType::i64, DType::b1}) {
    Scalar yes = Scalar::of(dtype, 1), no = Scalar::of(dtype, 0);
    CHECK_EQ(apply(ScalarOp::where, {Scalar::of_int(DType::b1, 1), yes, no}), yes);
    CHECK_EQ(apply(ScalarOp::where, {Scalar::of_int(DType::b1, 0), yes, no}), no);
  }
}

TEST_CASE("casts of floats to integers cut like the CPU") {
  struct Case {
    double value;
    int64_t u8, i8, i16, i32, i64;
  };
  for (const Case& c :
       {Case{300.7, 44, 44, 300, 300, 300}, Case{-1.5, 255, -1, -1, -1, -1},
        Case{3e9, 0, 0, 0, INT32_MIN, 3000000000}, Case{-129.0, 127, 127, -129, -129, -129},
        Case{kNan, 0, 0, 0, INT32_MIN, INT64_MIN}, Case{kInf, 0, 0, 0, INT32_MIN, INT64_MIN}}) {
    CAPTURE(c.value);
    Scalar from[] = {Scalar::of(DType::f32, c.value)};
    CHECK_EQ(evaluate(ScalarOp::cast, DType::u8, from).i, c.u8);
    CHECK_EQ(evaluate(ScalarOp::cast, DType::i8, from).i, c.i8);
    CHECK_EQ(evaluate(ScalarOp::cast, DType::i16, from).i, c.i16);
    CHECK_EQ(evaluate(ScalarOp::cast, DType::i32, from).i, c.i32);
    CHECK_EQ(evaluate(ScalarOp::cast, DType::i64, from).i, c.i64);
    CHECK_EQ(evaluate(ScalarOp::cast, DType::b1, from).i, 1);
  }
}

TEST_CASE("bitcast keeps the bits and refuses another width") {
  Scalar one[] = {Scalar::of(DType::f32, 1.0)};
  CHECK_EQ(evaluate(ScalarOp::bitcast, DType::i32, one).i, 0x3f800000);
  Scalar word[] = {Scalar::of_int(DType::i16, 0x3f80)};
  CHECK_EQ(evaluate(ScalarOp::bitcast, DType::bf16, word).f, 1.0);
  CHECK_EQ(evaluate(ScalarOp::bitcast, DType::f16, word).f, 1.875);
  Scalar negative_zero[] = {Scalar::of(DType::f64, -0.0)};
  CHECK_EQ(evaluate(ScalarOp::bitcast, DType::i64, negative_zero).i, INT64_MIN);
  CHECK_THROWS_AS(evaluate(ScalarOp::bitcast, DType::i64, one), InternalError);
}

}  // namespace
}  // namespace kerf::ops
