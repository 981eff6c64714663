// Expected values are what torch 2.13 gives on the CPU; those it traps on (the minimum divided by -1) wrap.
#include <doctest/doctest.h>

#include "apply.h"

namespace kerf::ops {
namespace {

struct FloatCase {
  double a, b, floor_div, rem, fmod, trunc_div;
};

const FloatCase kFloatCases[] = {
    {0.0, 0.0, kNan, kNan, kNan, kNan},     {1.0, 0.0, kInf, kNan, kNan, kInf},
    {1.0, -0.0, -kInf, kNan, kNan, -kInf},  {-7.0, 0.0, -kInf, kNan, kNan, -kInf},
    {0.0, 2.0, 0.0, 0.0, 0.0, 0.0},         {0.0, -2.0, -0.0, 0.0, 0.0, -0.0},
    {-0.0, 2.0, -0.0, -0.0, -0.0, -0.0},    {-0.0, -2.0, 0.0, -0.0, -0.0, 0.0},
    {7.0, 2.0, 3.0, 1.0, 1.0, 3.0},         {-7.0, 2.0, -4.0, 1.0, -1.0, -3.0},
    {7.0, -2.0, -4.0, -1.0, 1.0, -3.0},     {-7.0, -2.0, 3.0, -1.0, -1.0, 3.0},
    {0.5, -7.0, -1.0, -6.5, 0.5, -0.0},     {1.0, kInf, 0.0, 1.0, 1.0, 0.0},
    {-1.0, kInf, -1.0, kInf, -1.0, -0.0},   {1.0, -kInf, -1.0, -kInf, 1.0, -0.0},
    {-1.0, -kInf, 0.0, -1.0, -1.0, 0.0},    {kInf, 2.0, kNan, kNan, kNan, kInf},
    {kInf, -2.0, kNan, kNan, kNan, -kInf},  {kInf, 0.0, kInf, kNan, kNan, kInf},
    {-kInf, 0.0, -kInf, kNan, kNan, -kInf}, {kInf, kInf, kNan, kNan, kNan, kNan},
    {kNan, 1.0, kNan, kNan, kNan, kNan},    {1.0, kNan, kNan, kNan, kNan, kNan},
    {kNan, 0.0, kNan, kNan, kNan, kNan},
};

TEST_CASE("division of floats, special values") {
  for (DType dtype : {DType::f32, DType::f64}) {
    for (const FloatCase& c : kFloatCases) {
      CAPTURE(to_text(dtype));
      CAPTURE(c.a);
      CAPTURE(c.b);
      CHECK(same(apply(ScalarOp::floor_div, dtype, {c.a, c.b}), c.floor_div));
      CHECK(same(apply(ScalarOp::rem, dtype, {c.a, c.b}), c.rem));
      CHECK(same(apply(ScalarOp::fmod, dtype, {c.a, c.b}), c.fmod));
      CHECK(same(apply(ScalarOp::trunc_div, dtype, {c.a, c.b}), c.trunc_div));
    }
  }
}

TEST_CASE("division of floats rounds each step to the type") {
  CHECK_EQ(apply(ScalarOp::floor_div, DType::f32, {1.0, 0.1}), 9.0);
  CHECK_EQ(apply(ScalarOp::floor_div, DType::f64, {1.0, 0.1}), 9.0);
  CHECK_EQ(apply(ScalarOp::floor_div, DType::f32, {1e10, 3e-3}), 3333333188608.0);
  CHECK_EQ(apply(ScalarOp::rem, DType::f32, {1e10, 3e-3}), 0.0025604581460356712);
  // The exact quotient is finite in double only.
  CHECK_EQ(apply(ScalarOp::floor_div, DType::f32, {3.4e38, 0.3}), kInf);
  CHECK_EQ(apply(ScalarOp::trunc_div, DType::f32, {3.4e38, 0.3}), kInf);
  // A little below 7, and 7 once rounded to f32.
  CHECK_EQ(apply(ScalarOp::trunc_div, DType::f32, {58720248.0, 8388607.0}), 7.0);
  CHECK_EQ(apply(ScalarOp::trunc_div, DType::f64, {58720248.0, 8388607.0}), 6.0);
}

TEST_CASE("division of integers") {
  struct Case {
    int64_t a, b, floor_div, rem, trunc_div, fmod;
  };
  for (DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64}) {
    for (const Case& c : {Case{7, 2, 3, 1, 3, 1}, Case{-7, 2, -4, 1, -3, -1}, Case{7, -2, -4, -1, -3, 1},
                          Case{-7, -2, 3, -1, 3, -1}, Case{0, -3, 0, 0, 0, 0}, Case{6, -3, -2, 0, -2, 0}}) {
      CAPTURE(c.a);
      CAPTURE(c.b);
      CHECK_EQ(apply_integers(ScalarOp::floor_div, dtype, {c.a, c.b}), c.floor_div);
      CHECK_EQ(apply_integers(ScalarOp::rem, dtype, {c.a, c.b}), c.rem);
      CHECK_EQ(apply_integers(ScalarOp::trunc_div, dtype, {c.a, c.b}), c.trunc_div);
      CHECK_EQ(apply_integers(ScalarOp::fmod, dtype, {c.a, c.b}), c.fmod);
    }
  }
  CHECK_EQ(apply_integers(ScalarOp::floor_div, DType::u8, {200, 7}), 28);
  CHECK_EQ(apply_integers(ScalarOp::rem, DType::u8, {200, 7}), 4);
}

TEST_CASE("the minimum divided by -1 wraps and does not trap") {
  const std::pair<DType, int64_t> minima[] = {
      {DType::i8, INT8_MIN}, {DType::i16, INT16_MIN}, {DType::i32, INT32_MIN}, {DType::i64, INT64_MIN}};
  for (auto [dtype, minimum] : minima) {
    CAPTURE(to_text(dtype));
    CHECK_EQ(apply_integers(ScalarOp::floor_div, dtype, {minimum, -1}), minimum);
    CHECK_EQ(apply_integers(ScalarOp::trunc_div, dtype, {minimum, -1}), minimum);
    CHECK_EQ(apply_integers(ScalarOp::rem, dtype, {minimum, -1}), 0);
    CHECK_EQ(apply_integers(ScalarOp::fmod, dtype, {minimum, -1}), 0);
  }
}

}  // namespace
}  // namespace kerf::ops
