#include <doctest/doctest.h>

#include <array>
#include <climits>
#include <utility>

#include "apply.h"
#include "ops/reduce_op.h"

namespace kerf::ops {
namespace {

double fold(ReduceOp op, DType dtype, const std::vector<double>& values) {
  Scalar accumulator = identity(op, dtype);
  for (const Scalar& value : scalars(dtype, values)) accumulator = combine(op, accumulator, value);
  return accumulator.as_double();
}

TEST_CASE("a fold over nothing is the identity") {
  CHECK(same(fold(ReduceOp::sum, DType::f32, {}), 0.0));
  CHECK_EQ(fold(ReduceOp::prod, DType::i64, {}), 1);
  CHECK_EQ(fold(ReduceOp::min, DType::f32, {}), kInf);
  CHECK_EQ(fold(ReduceOp::max, DType::f64, {}), -kInf);
  CHECK_EQ(fold(ReduceOp::min, DType::u8, {}), 255);
  CHECK_EQ(fold(ReduceOp::max, DType::u8, {}), 0);
  CHECK_EQ(fold(ReduceOp::min, DType::i16, {}), 32767);
  CHECK_EQ(identity(ReduceOp::min, DType::i64).i, INT64_MAX);
  CHECK_EQ(identity(ReduceOp::max, DType::i64).i, INT64_MIN);
  CHECK_EQ(fold(ReduceOp::min, DType::b1, {}), 1);
  CHECK_EQ(fold(ReduceOp::max, DType::b1, {}), 0);
  CHECK_EQ(fold(ReduceOp::any, DType::b1, {}), 0);
  CHECK_EQ(fold(ReduceOp::all, DType::b1, {}), 1);
}

TEST_CASE("folds") {
  CHECK_EQ(fold(ReduceOp::sum, DType::i8, {100, 100}), -56);
  CHECK_EQ(fold(ReduceOp::sum, DType::f32, {16777216, 1, 1}), 16777216);
  CHECK(same(fold(ReduceOp::sum, DType::f32, {-0.0, -0.0}), 0.0));
  CHECK_EQ(fold(ReduceOp::prod, DType::f32, {2, 3, -4}), -24);
  CHECK(same(fold(ReduceOp::min, DType::f32, {1, kNan, 0}), kNan));
  CHECK(same(fold(ReduceOp::max, DType::f32, {kNan, 1, 2}), kNan));
  CHECK_EQ(fold(ReduceOp::max, DType::f32, {-3, -1, -2}), -1);
  CHECK_EQ(fold(ReduceOp::any, DType::b1, {0, 1, 0}), 1);
  CHECK_EQ(fold(ReduceOp::all, DType::b1, {1, 1, 0}), 0);
  CHECK_THROWS_AS(combine(ReduceOp::argmin, Scalar::of(DType::f32, 0), Scalar::of(DType::f32, 0)),
                  InternalError);
  CHECK_THROWS_AS(combine(ReduceOp::sum, Scalar::of(DType::f32, 0), Scalar::of(DType::f64, 0)),
                  InternalError);
}

// Folds forwards, or backwards to show that the order does not matter.
struct Found {
  double value;
  int64_t index;
};
Found found(ReduceOp op, DType dtype, const std::vector<double>& values, bool backwards) {
  Scalar best = identity(op, dtype);
  int64_t best_index = INT64_MAX;
  for (size_t step = 0; step < values.size(); ++step) {
    size_t i = backwards ? values.size() - 1 - step : step;
    Scalar value = Scalar::of(dtype, values[i]);
    if (!replaces(op, value, static_cast<int64_t>(i), best, best_index)) continue;
    best = value;
    best_index = static_cast<int64_t>(i);
  }
  return {best.as_double(), best_index};
}

int64_t index_fold(ReduceOp op, DType dtype, const std::vector<double>& values, bool backwards) {
  return found(op, dtype, values, backwards).index;
}

TEST_CASE("argmin and argmax give the first extremum or the first NaN, in any order of folding") {
  struct Case {
    std::vector<double> values;
    int64_t argmin, argmax;
  };
  for (const Case& c : {Case{{3, 1, 2, 1, 3}, 1, 0}, Case{{5}, 0, 0}, Case{{1, kNan, 5, kNan}, 1, 1},
                        Case{{kInf, kInf}, 0, 0}, Case{{-kInf, -kInf}, 0, 0}, Case{{0.0, -0.0}, 0, 0},
                        Case{{-0.0, 0.0}, 0, 0}, Case{{kNan}, 0, 0}, Case{{}, INT64_MAX, INT64_MAX}}) {
    for (bool backwards : {false, true}) {
      CHECK_EQ(index_fold(ReduceOp::argmin, DType::f32, c.values, backwards), c.argmin);
      CHECK_EQ(index_fold(ReduceOp::argmax, DType::f32, c.values, backwards), c.argmax);
    }
  }
  for (bool backwards : {false, true}) {
    CHECK_EQ(index_fold(ReduceOp::argmax, DType::u8, {7, 200, 200}, backwards), 1);
    CHECK_EQ(index_fold(ReduceOp::argmin, DType::i32, {INT32_MAX, INT32_MAX}, backwards), 0);
    CHECK_EQ(index_fold(ReduceOp::argmax, DType::b1, {0, 1, 1}, backwards), 1);
  }
}

TEST_CASE("first_min and first_max give the value that argmin and argmax point at") {
  for (bool backwards : {false, true}) {
    for (double zero : {0.0, -0.0}) {
      CHECK(same(found(ReduceOp::first_max, DType::f32, {-1, zero, -zero, zero, -2}, backwards).value, zero));
      CHECK(same(found(ReduceOp::first_min, DType::f64, {1, zero, -zero, 2}, backwards).value, zero));
    }
    CHECK(same(found(ReduceOp::first_max, DType::f32, {1, kNan, 5}, backwards).value, kNan));
    CHECK_EQ(found(ReduceOp::first_min, DType::u8, {7, 3, 200}, backwards).value, 3);
    CHECK_EQ(found(ReduceOp::first_max, DType::f32, {}, backwards).value, -kInf);
  }
}

}  // namespace
}  // namespace kerf::ops
