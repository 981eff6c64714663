#include <doctest/doctest.h>

#include <vector>

#include "ops/reduce_op.h"
#include "ops/scalar_op.h"

namespace kerf::ops {
namespace {

constexpr ScalarOp kAllOps[] = {
#define OP(name, ...) ScalarOp::name,
#include "ops/scalar_ops.def"
#undef OP
};

TEST_CASE("every operation has an evaluator") {
  for (ScalarOp op : kAllOps) {
    CAPTURE(to_text(op));
    CHECK(static_cast<bool>(info(op).eval));
  }
}

TEST_CASE("every operation is found by its text") {
  for (ScalarOp op : kAllOps) CHECK_EQ(scalar_op_from_text(to_text(op)), op);
  CHECK_FALSE(scalar_op_from_text("no_such_op").has_value());
  CHECK_FALSE(scalar_op_from_text("").has_value());
}

TEST_CASE("every operation takes the operands its rule names and nothing of another number") {
  for (ScalarOp op : kAllOps) {
    CAPTURE(to_text(op));
    std::vector<DType> none;
    CHECK_FALSE(result_dtype(op, none).has_value());
    std::vector<DType> too_many(static_cast<size_t>(info(op).arity) + 1, DType::f32);
    CHECK_FALSE(result_dtype(op, too_many).has_value());
  }
}

TEST_CASE("typing rules") {
  using enum DType;
  auto type = [](ScalarOp op, std::vector<DType> operands) { return result_dtype(op, operands); };
  CHECK_EQ(type(ScalarOp::exp, {f32}), f32);
  CHECK_EQ(type(ScalarOp::exp, {f16}), std::nullopt);
  CHECK_EQ(type(ScalarOp::exp, {i32}), std::nullopt);
  CHECK_EQ(type(ScalarOp::add, {i8, i8}), i8);
  CHECK_EQ(type(ScalarOp::add, {i8, u8}), std::nullopt);
  CHECK_EQ(type(ScalarOp::add, {b1, b1}), std::nullopt);
  CHECK_EQ(type(ScalarOp::and_, {b1, b1}), b1);
  CHECK_EQ(type(ScalarOp::and_, {f32, f32}), std::nullopt);
  CHECK_EQ(type(ScalarOp::minimum, {b1, b1}), b1);
  CHECK_EQ(type(ScalarOp::minimum, {bf16, bf16}), std::nullopt);
  CHECK_EQ(type(ScalarOp::lt, {f64, f64}), b1);
  CHECK_EQ(type(ScalarOp::lt, {f64, f32}), std::nullopt);
  CHECK_EQ(type(ScalarOp::isnan, {f32}), b1);
  CHECK_EQ(type(ScalarOp::isnan, {i32}), std::nullopt);
  CHECK_EQ(type(ScalarOp::where, {b1, bf16, bf16}), bf16);
  CHECK_EQ(type(ScalarOp::where, {b1, f32, f64}), std::nullopt);
  CHECK_EQ(type(ScalarOp::where, {i32, f32, f32}), std::nullopt);
  CHECK_EQ(type(ScalarOp::cast, {f32}), std::nullopt);
  CHECK_EQ(type(ScalarOp::check_index, {i64, i64}), i64);
  CHECK_EQ(type(ScalarOp::check_index, {i32, i32}), std::nullopt);
  CHECK_EQ(type(ScalarOp::random_uniform, {i64, i64}), f32);
}

TEST_CASE("operations that always fail on zero divisors and bad indices say so") {
  auto two = [](DType dtype, int64_t a, int64_t b) {
    return std::vector<Scalar>{Scalar::of_int(dtype, a), Scalar::of_int(dtype, b)};
  };
  for (ScalarOp op : {ScalarOp::floor_div, ScalarOp::trunc_div, ScalarOp::rem, ScalarOp::fmod}) {
    CAPTURE(to_text(op));
    CHECK(fails(op, DType::i32, two(DType::i32, 3, 0)));
    CHECK_EQ(evaluate(op, DType::i32, two(DType::i32, 3, 0)), Scalar::of_int(DType::i32, 0));
    CHECK_FALSE(fails(op, DType::i32, two(DType::i32, 0, 3)));
    CHECK_FALSE(fails(op, DType::f32, two(DType::f32, 3, 0)));
  }
  struct IndexCase {
    int64_t index, bound;
    bool checked, wrapped;  // which fail
    int64_t wrapped_value;
  };
  for (auto [index, bound, checked, wrapped, wrapped_value] :
       std::vector<IndexCase>{{0, 3, false, false, 0},
                              {2, 3, false, false, 2},
                              {3, 3, true, true, 0},
                              {-1, 3, true, false, 2},
                              {-3, 3, true, false, 0},
                              {-4, 3, true, true, 0},
                              {0, 0, true, true, 0},
                              {-1, 0, true, true, 0}}) {
    CAPTURE(index);
    CAPTURE(bound);
    auto operands = two(DType::i64, index, bound);
    CHECK_EQ(fails(ScalarOp::check_index, DType::i64, operands), checked);
    CHECK_EQ(fails(ScalarOp::wrap_index, DType::i64, operands), wrapped);
    CHECK_EQ(evaluate(ScalarOp::check_index, DType::i64, operands).i, checked ? 0 : index);
    CHECK_EQ(evaluate(ScalarOp::wrap_index, DType::i64, operands).i, wrapped_value);
  }
  CHECK_FALSE(fails(ScalarOp::add, DType::i32, two(DType::i32, 3, 0)));
}

TEST_CASE("reductions are found by their text") {
  for (ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max, ReduceOp::any,
                      ReduceOp::all, ReduceOp::argmin, ReduceOp::argmax, ReduceOp::argmax_last_nan,
                      ReduceOp::first_min, ReduceOp::first_max})
    CHECK_EQ(reduce_op_from_text(to_text(op)), op);
  CHECK_FALSE(reduce_op_from_text("mean").has_value());
}

}  // namespace
}  // namespace kerf::ops
