// torch's promotion table and the standing of tensors, 0-d tensors and numbers.
#include "graph/promote.h"

#include <doctest/doctest.h>

using kerf::DType;
using namespace kerf::graph;

TEST_CASE("two dtypes of equal standing") {
  CHECK(promote(DType::b1, DType::u8) == DType::u8);
  CHECK(promote(DType::u8, DType::i8) == DType::i16);
  CHECK(promote(DType::u8, DType::i32) == DType::i32);
  CHECK(promote(DType::i64, DType::f16) == DType::f16);
  CHECK(promote(DType::f16, DType::bf16) == DType::f32);
  CHECK(promote(DType::bf16, DType::f64) == DType::f64);
}

TEST_CASE("a lower standing decides only by a higher kind") {
  auto type = [](std::initializer_list<Promoted> operands) { return result_type(operands); };
  CHECK(type({{DType::f16, Standing::tensor}, {DType::f32, Standing::zero_dim}}) == DType::f16);
  CHECK(type({{DType::i32, Standing::tensor}, {DType::i64, Standing::number}}) == DType::i32);
  CHECK(type({{DType::i32, Standing::tensor}, {DType::f32, Standing::number}}) == DType::f32);
  CHECK(type({{DType::b1, Standing::tensor}, {DType::i64, Standing::number}}) == DType::i64);
  CHECK(type({{DType::f64, Standing::zero_dim}, {DType::f32, Standing::number}}) == DType::f64);
  CHECK(type({{DType::u8, Standing::tensor}, {DType::f16, Standing::zero_dim}}) == DType::f16);
}
