#include "loop/build.h"

#include "base/error.h"
#include "loop/print.h"
#include "loop/verify.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::loop;

TEST_CASE("the builder's example prints as documented and is valid") {
  sym::Context context;
  KernelBuilder b(context, "row_sum");
  sym::Expr n = b.add_size("n", {1, 4096}, {8, 0});
  BufferId x = b.add_buffer("x", DType::f32, {n, b.integer(64)});
  BufferId y = b.add_buffer("y", DType::f32, {n}, BufferMode::out);
  b.loop("i", n, [&](sym::Expr i) {
    auto element = [&](sym::Expr j) { return b.apply(ops::ScalarOp::exp, {b.load(x, i * 64 + j)}); };
    b.store(y, i, b.reduce(ops::ReduceOp::sum, "j", b.integer(64), element));
  });
  Kernel kernel = b.finish();
  CHECK(verify(kernel).empty());
  CHECK_EQ(to_text(kernel), R"(kernel row_sum(x: f32[n, 64], out y: f32[n]) given n in [1, 4096], n mod 8 = 0
  for i < n
    %2 = reduce sum for j < 64
      %0 = load x[64*i + j]
      %1 = exp %0
      yield %1
    store y[i], %2
)");
}

TEST_CASE("dtypes follow the rows; a cast to the same dtype is the value") {
  sym::Context context;
  KernelBuilder b(context, "k");
  ValueId one = b.constant(DType::f32, 1);
  ValueId is_less = b.apply(ops::ScalarOp::lt, {one, one});
  CHECK(b.dtype(is_less) == DType::b1);
  CHECK(b.dtype(b.apply(ops::ScalarOp::where, {is_less, one, one})) == DType::f32);
  CHECK(b.cast(one, DType::f32) == one);
  CHECK(b.dtype(b.cast(one, DType::bf16)) == DType::bf16);
  CHECK(b.dtype(b.bitcast(one, DType::i32)) == DType::i32);
  CHECK_THROWS_WITH_AS(b.apply(ops::ScalarOp::add, {one, is_less}), doctest::Contains("add over f32 bool"),
                       InternalError);
  CHECK_THROWS_AS(b.as_expr(one), InternalError);
}

TEST_CASE("what is not open cannot be closed, what is open must be") {
  sym::Context context;
  KernelBuilder b(context, "k");
  CHECK_THROWS_AS(b.close_loop(), InternalError);
  b.open_loop(b.add_axis("i", b.integer(4)));
  CHECK_THROWS_AS(b.close_guard(), InternalError);
  CHECK_THROWS_AS(b.finish(), InternalError);
}

TEST_CASE("axis names that are taken get a number") {
  sym::Context context;
  KernelBuilder b(context, "k");
  b.add_size("n");
  auto name_of = [&](AxisId axis) { return b.symbol(axis).symbol().name; };
  CHECK_EQ(name_of(b.add_axis("i", b.integer(4))), "i");
  CHECK_EQ(name_of(b.add_axis("i", b.integer(4))), "i_1");
  CHECK_EQ(name_of(b.add_axis("i", b.integer(4))), "i_2");
  CHECK_EQ(name_of(b.add_axis("n", b.integer(4))), "n_1");
}
