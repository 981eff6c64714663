// Expected values are what torch 2.13 gives on the CPU, or the exact value where it says so.
#include <doctest/doctest.h>

#include "apply.h"

namespace kerf::ops {
namespace {

struct UnaryCase {
  ScalarOp op;
  double x, expected;
};

TEST_CASE("special values of unary functions") {
  using enum ScalarOp;
  for (const UnaryCase& c : {
           UnaryCase{round, 0.5, 0.0}, {round, 1.5, 2.0},         {round, 2.5, 2.0},
           {round, -0.5, -0.0},        {round, -2.5, -2.0},       {floor, -0.5, -1.0},
           {floor, -0.0, -0.0},        {ceil, -0.5, -0.0},        {trunc, -1.9, -1.0},
           {trunc, -0.9, -0.0},        {sqrt, -0.0, -0.0},        {sqrt, -1.0, kNan},
           {rsqrt, 0.0, kInf},         {rsqrt, -0.0, -kInf},      {rsqrt, kInf, 0.0},
           {rsqrt, -1.0, kNan},        {reciprocal, -0.0, -kInf}, {reciprocal, -kInf, -0.0},
           {exp, kInf, kInf},          {exp, -kInf, 0.0},         {exp, 89.0, kInf},
           {exp, -104.0, 0.0},         {expm1, -0.0, -0.0},       {expm1, -kInf, -1.0},
           {exp2, 128.0, kInf},        {exp2, -3.0, 0.125},       {log, 0.0, -kInf},
           {log, -1.0, kNan},          {log, kInf, kInf},         {log2, 8.0, 3.0},
           {log10, 1000.0, 3.0},       {log1p, -1.0, -kInf},      {log1p, -0.0, -0.0},
           {log1p, -2.0, kNan},        {sin, -0.0, -0.0},         {sin, kInf, kNan},
           {cos, kInf, kNan},          {tan, -0.0, -0.0},         {asin, 2.0, kNan},
           {acos, 1.0, 0.0},           {acosh, 0.5, kNan},        {acosh, 1.0, 0.0},
           {atanh, 1.0, kInf},         {atanh, -1.0, -kInf},      {atanh, 2.0, kNan},
           {asinh, -kInf, -kInf},      {sinh, -kInf, -kInf},      {cosh, -kInf, kInf},
           {tanh, -kInf, -1.0},        {tanh, -0.0, -0.0},        {sigmoid, kInf, 1.0},
           {sigmoid, -kInf, 0.0},      {sigmoid, 0.0, 0.5},       {erf, kInf, 1.0},
           {erf, -0.0, -0.0},          {erfc, kInf, 0.0},         {erfc, -kInf, 2.0},
           {erfinv, 1.0, kInf},        {erfinv, -1.0, -kInf},     {erfinv, -0.0, -0.0},
           {erfinv, 1.5, kNan},        {erfinv, kInf, kNan},      {lgamma, 0.0, kInf},
           {lgamma, -2.0, kInf},       {lgamma, 1.0, 0.0},        {lgamma, -kInf, kInf},
       }) {
    for (DType dtype : {DType::f32, DType::f64}) {
      if (dtype == DType::f64 && std::isfinite(c.x) && std::fabs(c.x) > 80) continue;  // limits of f32
      CAPTURE(to_text(c.op));
      CAPTURE(to_text(dtype));
      CAPTURE(c.x);
      CHECK(same(apply(c.op, dtype, {c.x}), c.expected));
      CHECK(same(apply(c.op, dtype, {kNan}), kNan));
    }
  }
}

TEST_CASE("values rounded to f32") {
  using enum ScalarOp;
  for (const UnaryCase& c : {UnaryCase{erfinv, 0.5, 0.4769362807273865},
                             {lgamma, -2.5, -0.056243717670440674},
                             {lgamma, 0.5, 0.5723649263381958},
                             {sigmoid, -2.0, 0.11920291930437088},
                             {erf, 1.0, 0.8427007794380188},
                             {log1p, 2.0, 1.0986123085021973},
                             {expm1, 2.5, 11.182494163513184},
                             {atanh, 0.5, 0.5493061542510986}}) {
    CAPTURE(to_text(c.op));
    CHECK_EQ(apply(c.op, DType::f32, {c.x}), c.expected);
  }
}

TEST_CASE("sigmoid is zero where exp(-x) is beyond the type") {
  CHECK_EQ(apply(ScalarOp::sigmoid, DType::f32, {-88.0}), 6.054601485195952e-39);
  CHECK_EQ(apply(ScalarOp::sigmoid, DType::f32, {-89.0}), 0.0);
  CHECK_GT(apply(ScalarOp::sigmoid, DType::f64, {-89.0}), 0.0);
  CHECK_EQ(apply(ScalarOp::sigmoid, DType::f64, {-710.0}), 0.0);
}

TEST_CASE("erfinv undoes erf over its whole range") {
  for (double x : {1e-300, 1e-9, 1e-4, 0.1, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0}) {
    CAPTURE(x);
    double y = std::erf(x);
    // One rounding of y moves x by at most eps * y / slope.
    double slope = std::exp(-x * x) * 1.1283791670955126;
    double tolerance = 4 * 0x1p-53 * (x + y / slope);
    CHECK_LE(std::fabs(apply(ScalarOp::erfinv, DType::f64, {y}) - x), tolerance);
    CHECK_EQ(apply(ScalarOp::erfinv, DType::f64, {-y}), -apply(ScalarOp::erfinv, DType::f64, {y}));
  }
}

TEST_CASE("logaddexp with infinities") {
  auto logaddexp = [](double a, double b) { return apply(ScalarOp::logaddexp, DType::f32, {a, b}); };
  CHECK_EQ(logaddexp(kInf, kInf), kInf);
  CHECK_EQ(logaddexp(-kInf, -kInf), -kInf);
  CHECK_EQ(logaddexp(-kInf, kInf), kInf);
  CHECK_EQ(logaddexp(-kInf, 5.0), 5.0);
  CHECK_EQ(logaddexp(3e38, -3e38), static_cast<double>(3e38f));
  CHECK(std::isnan(logaddexp(kNan, kInf)));
  CHECK(std::isnan(logaddexp(-kInf, kNan)));
  CHECK_EQ(logaddexp(0.0, 0.0), 0.6931471824645996);
  CHECK_EQ(logaddexp(-1.0, 5.0), 5.002475738525391);
}

TEST_CASE("two-operand functions") {
  CHECK(same(apply(ScalarOp::atan2, DType::f32, {-0.0, 1.0}), -0.0));
  CHECK_EQ(apply(ScalarOp::atan2, DType::f32, {0.0, -1.0}), static_cast<double>(3.14159265f));
  CHECK_EQ(apply(ScalarOp::hypot, DType::f32, {kInf, kNan}), kInf);
  CHECK_EQ(apply(ScalarOp::hypot, DType::f32, {3e38, 0.0}), static_cast<double>(3e38f));
  CHECK(same(apply(ScalarOp::copysign, DType::f32, {kInf, -0.0}), -kInf));
  CHECK(same(apply(ScalarOp::copysign, DType::f32, {0.0, -1.0}), -0.0));
  CHECK_EQ(apply(ScalarOp::nextafter, DType::f32, {1.0, 2.0}), 1 + 0x1p-23);
  CHECK_EQ(apply(ScalarOp::nextafter, DType::f64, {1.0, 2.0}), 1 + 0x1p-52);
  CHECK_EQ(apply(ScalarOp::nextafter, DType::f32, {0.0, -1.0}), -0x1p-149);
}

TEST_CASE("predicates") {
  for (DType dtype : {DType::f32, DType::f64}) {
    CHECK_EQ(apply(ScalarOp::isnan, dtype, {kNan}), 1);
    CHECK_EQ(apply(ScalarOp::isnan, dtype, {kInf}), 0);
    CHECK_EQ(apply(ScalarOp::isinf, dtype, {-kInf}), 1);
    CHECK_EQ(apply(ScalarOp::isinf, dtype, {kNan}), 0);
    CHECK_EQ(apply(ScalarOp::isfinite, dtype, {kInf}), 0);
    CHECK_EQ(apply(ScalarOp::isfinite, dtype, {kNan}), 0);
    CHECK_EQ(apply(ScalarOp::isfinite, dtype, {0.0}), 1);
    CHECK_EQ(apply(ScalarOp::signbit, dtype, {-0.0}), 1);
    CHECK_EQ(apply(ScalarOp::signbit, dtype, {0.0}), 0);
  }
}

TEST_CASE("random numbers are philox2x32-10, first word, top 24 bits") {
  auto uniform = [](uint64_t seed, uint64_t counter) {
    return apply(ScalarOp::random_uniform, {Scalar::of_int(DType::i64, static_cast<int64_t>(seed)),
                                            Scalar::of_int(DType::i64, static_cast<int64_t>(counter))})
        .f;
  };
  // The known answers published with Random123.
  CHECK_EQ(uniform(0, 0), (0xff1dae59u >> 8) * 0x1p-24);
  CHECK_EQ(uniform(0xffffffffu, ~uint64_t{0}), (0x2c3f628bu >> 8) * 0x1p-24);
  CHECK_EQ(uniform(0x13198a2eu, 0x85a308d3243f6a88u), (0xdd7ce038u >> 8) * 0x1p-24);
  // The seed's upper half counts.
  CHECK_NE(uniform(uint64_t{1} << 32, 0), uniform(0, 0));
  CHECK_EQ(uniform(uint64_t{1} << 32, 0), uniform(0x85EBCA6Bu, 0));

  double sum = 0, sum_of_squares = 0;
  constexpr int kSamples = 100000;
  for (int i = 0; i < kSamples; ++i) {
    double u = uniform(42, static_cast<uint64_t>(i));
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    sum += u;
    sum_of_squares += u * u;
  }
  // Five standard deviations of the two means.
  CHECK_LT(std::fabs(sum / kSamples - 0.5), 5 * std::sqrt(1.0 / 12 / kSamples));
  CHECK_LT(std::fabs(sum_of_squares / kSamples - 1.0 / 3), 5 * std::sqrt(4.0 / 45 / kSamples));
}

}  // namespace
}  // namespace kerf::ops
