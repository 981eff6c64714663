// Expected values are what torch 2.13 gives on the CPU.
#include <doctest/doctest.h>

#include "apply.h"

namespace kerf::ops {
namespace {

TEST_CASE("integers wrap to their type") {
  CHECK_EQ(apply_integers(ScalarOp::add, DType::i8, {127, 1}), -128);
  CHECK_EQ(apply_integers(ScalarOp::add, DType::u8, {255, 1}), 0);
  CHECK_EQ(apply_integers(ScalarOp::sub, DType::u8, {0, 1}), 255);
  CHECK_EQ(apply_integers(ScalarOp::sub, DType::i16, {INT16_MIN, 1}), INT16_MAX);
  CHECK_EQ(apply_integers(ScalarOp::mul, DType::i32, {65536, 65536}), 0);
  CHECK_EQ(apply_integers(ScalarOp::mul, DType::i64, {INT64_MAX, 2}), -2);
  CHECK_EQ(apply_integers(ScalarOp::add, DType::i64, {INT64_MAX, 1}), INT64_MIN);
  CHECK_EQ(apply_integers(ScalarOp::neg, DType::i8, {-128}), -128);
  CHECK_EQ(apply_integers(ScalarOp::neg, DType::u8, {5}), 251);
  CHECK_EQ(apply_integers(ScalarOp::abs, DType::i8, {-128}), -128);
  CHECK_EQ(apply_integers(ScalarOp::abs, DType::i64, {INT64_MIN}), INT64_MIN);
  CHECK_EQ(apply_integers(ScalarOp::sign, DType::u8, {200}), 1);
  CHECK_EQ(apply_integers(ScalarOp::sign, DType::i32, {-9}), -1);
}

TEST_CASE("sums and products of f32 are rounded once to f32") {
  CHECK_EQ(apply(ScalarOp::add, DType::f32, {16777216.0, 1.0}), 16777216.0);
  CHECK_EQ(apply(ScalarOp::add, DType::f64, {16777216.0, 1.0}), 16777217.0);
  CHECK_EQ(apply(ScalarOp::mul, DType::f32, {3e38, 2.0}), kInf);
  CHECK(same(apply(ScalarOp::sub, DType::f32, {kInf, kInf}), kNan));
  CHECK(same(apply(ScalarOp::add, DType::f32, {-0.0, -0.0}), -0.0));
  CHECK(same(apply(ScalarOp::div, DType::f32, {-1.0, kInf}), -0.0));
  CHECK(same(apply(ScalarOp::div, DType::f32, {1.0, -0.0}), -kInf));
}

TEST_CASE("fma rounds once where a product and a sum in double round twice") {
  // The product is 2^-24 - 2^-70. Double drops the last part, which leaves a tie between two floats.
  double a = 0x1p-12 * (1 + 0x1p-23), b = 0x1p-12 * (1 - 0x1p-23);
  CHECK_EQ(apply(ScalarOp::fma, DType::f32, {a, b, 1 + 0x1p-23}), 1 + 0x1p-23);
  CHECK_EQ(static_cast<double>(static_cast<float>(a * b + (1 + 0x1p-23))), 1 + 0x1p-22);
  CHECK_EQ(apply(ScalarOp::fma, DType::f64, {1 + 0x1p-30, 1 - 0x1p-30, -1.0}), -0x1p-60);
}

TEST_CASE("sign and abs of special values") {
  CHECK(same(apply(ScalarOp::sign, DType::f32, {kNan}), 0.0));
  CHECK(same(apply(ScalarOp::sign, DType::f32, {-0.0}), 0.0));
  CHECK(same(apply(ScalarOp::sign, DType::f32, {-kInf}), -1.0));
  CHECK(same(apply(ScalarOp::abs, DType::f32, {-0.0}), 0.0));
  CHECK(same(apply(ScalarOp::neg, DType::f32, {0.0}), -0.0));
}

TEST_CASE("minimum and maximum carry NaN, fmin and fmax drop it; zeros are ordered") {
  struct Case {
    double a, b, minimum, maximum, fmin, fmax;
  };
  for (const Case& c :
       {Case{1, 2, 1, 2, 1, 2}, Case{kNan, 2, kNan, kNan, 2, 2}, Case{2, kNan, kNan, kNan, 2, 2},
        Case{kNan, kNan, kNan, kNan, kNan, kNan}, Case{0.0, -0.0, -0.0, 0.0, -0.0, 0.0},
        Case{-0.0, 0.0, -0.0, 0.0, -0.0, 0.0}, Case{-kInf, kInf, -kInf, kInf, -kInf, kInf},
        Case{kNan, kInf, kNan, kNan, kInf, kInf}}) {
    CAPTURE(c.a);
    CAPTURE(c.b);
    CHECK(same(apply(ScalarOp::minimum, DType::f32, {c.a, c.b}), c.minimum));
    CHECK(same(apply(ScalarOp::maximum, DType::f32, {c.a, c.b}), c.maximum));
    CHECK(same(apply(ScalarOp::fmin, DType::f32, {c.a, c.b}), c.fmin));
    CHECK(same(apply(ScalarOp::fmax, DType::f32, {c.a, c.b}), c.fmax));
  }
  CHECK_EQ(apply_integers(ScalarOp::minimum, DType::u8, {255, 1}), 1);
  CHECK_EQ(apply_integers(ScalarOp::maximum, DType::i64, {INT64_MIN, INT64_MAX}), INT64_MAX);
  CHECK_EQ(apply_integers(ScalarOp::fmax, DType::i8, {-1, 1}), 1);
  CHECK_EQ(apply_integers(ScalarOp::minimum, DType::b1, {1, 0}), 0);
  CHECK_EQ(apply_integers(ScalarOp::maximum, DType::b1, {1, 0}), 1);
}

TEST_CASE("integer powers") {
  struct Case {
    DType dtype;
    int64_t base, exponent, expected;
  };
  using enum DType;
  for (const Case& c :
       {Case{i32, 0, 0, 1}, Case{i32, 0, -3, 0}, Case{i32, 1, -4, 1}, Case{i32, -1, -4, 1},
        Case{i32, -1, -3, -1}, Case{i32, 2, -1, 0}, Case{i32, -3, 5, -243}, Case{i32, 7, 9, 40353607},
        Case{i8, 2, 9, 0}, Case{i8, 3, 5, -13}, Case{i8, -1, INT8_MIN, 1}, Case{u8, 7, 5, 167},
        Case{u8, 255, 255, 255}, Case{i64, 2, 63, INT64_MIN},
        Case{i64, 3, 64, static_cast<int64_t>(8733086111712066817u)}}) {
    CAPTURE(c.base);
    CAPTURE(c.exponent);
    CHECK_EQ(apply_integers(ScalarOp::pow, c.dtype, {c.base, c.exponent}), c.expected);
  }
}

TEST_CASE("float powers follow C") {
  CHECK(same(apply(ScalarOp::pow, DType::f32, {kNan, 0.0}), 1.0));
  CHECK(same(apply(ScalarOp::pow, DType::f32, {1.0, kNan}), 1.0));
  CHECK(same(apply(ScalarOp::pow, DType::f32, {-2.0, 0.5}), kNan));
  CHECK(same(apply(ScalarOp::pow, DType::f32, {-2.0, 3.0}), -8.0));
  CHECK(same(apply(ScalarOp::pow, DType::f32, {-0.0, -1.0}), -kInf));
  CHECK(same(apply(ScalarOp::pow, DType::f32, {0.0, -2.0}), kInf));
  CHECK(same(apply(ScalarOp::pow, DType::f32, {-kInf, -3.0}), -0.0));
}

}  // namespace
}  // namespace kerf::ops
