#include <cmath>

#include "run_graph.h"

namespace kerf::test {
namespace {

using ops::ReduceOp;
using ops::ScalarOp;

TEST_CASE("operands broadcast along leading and one-element dimensions") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 1, 4}), y = sample(DType::f32, {3, 1}, 1), z = sample(DType::f32, {}, 2);
  c.output(c.b.apply(ScalarOp::fma, {c.input(x), c.input(y), c.input(z)}));
  check_equal(c.run_one(), computed(DType::f32, {2, 3, 4}, [&](const Index& i) {
                return x.at({i[0], 0, i[2]}).f * y.at({i[1], 0}).f + z.at({}).f;
              }));
  CHECK(c.launches() == 1);
}

TEST_CASE("values without dimensions, with empty ones and with one element") {
  for (const Index& shape : {Index{}, Index{0}, Index{3, 0, 2}, Index{1, 1}}) {
    GraphCase c;
    Tensor x = sample(DType::f64, shape);
    c.output(c.b.apply(ScalarOp::neg, {c.input(x)}));
    check_equal(c.run_one(), computed(DType::f64, shape, [&](const Index& i) { return -x.at(i).f; }));
  }
}

TEST_CASE("constants are values inside their readers, NaN and -0.0 among them") {
  GraphCase c;
  Tensor x = tensor(DType::f32, {4}, {1.5, -0.0, INFINITY, NAN});
  graph::ValueId zero = c.b.full(c.shape({4}), Scalar::of(DType::f32, -0.0));
  c.output(c.b.apply(ScalarOp::add, {c.input(x), zero}));
  check_equal(c.run_one(), x);
  CHECK(c.launches() == 1);
}

TEST_CASE("iotas are values inside their readers") {
  GraphCase c;
  graph::ValueId iota = c.b.iota(c.integer(5), c.integer(7), c.integer(-2), DType::i64);
  c.output(c.b.apply(ScalarOp::mul, {c.b.flip(iota, {0}), c.input(sample(DType::i64, {5}))}));
  Tensor x = sample(DType::i64, {5});
  check_equal(c.run_one(), computed(DType::i64, {5}, [&](const Index& i) {
                return static_cast<double>((7 - 2 * (4 - i[0])) * x.at(i).i);
              }));
  CHECK(c.launches() == 1);
}

TEST_CASE("bf16 flows through casts and selections") {
  GraphCase c;
  Tensor x = sample(DType::bf16, {6});
  graph::ValueId in = c.input(x);
  graph::ValueId wide = c.b.cast(in, DType::f32);
  graph::ValueId third =
      c.b.cast(c.b.apply(ScalarOp::mul, {wide, c.b.constant(Scalar::of(DType::f32, 1.0 / 3))}), DType::bf16);
  graph::ValueId positive = c.b.apply(ScalarOp::gt, {wide, c.b.constant(Scalar::of(DType::f32, 0))});
  c.output(c.b.apply(ScalarOp::where, {positive, third, in}));
  check_equal(c.run_one(), computed(DType::bf16, {6}, [&](const Index& i) {
                float value = static_cast<float>(x.at(i).f);
                return value > 0 ? value * (1.0f / 3) : value;
              }));
}

TEST_CASE("a bitcast keeps the bits") {
  GraphCase c;
  c.output(c.b.node(graph::Op::bitcast, {c.input(tensor(DType::f32, {2}, {1.0, -0.0}))},
                    {{graph::Attr::dtype, DType::i32}}, {})[0]);
  check_equal(c.run_one(), tensor(DType::i32, {2}, {0x3f800000, INT32_MIN}));
}

TEST_CASE("inputs are read with their own strides") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 3, 4});
  c.output(c.b.apply(ScalarOp::neg, {c.input(x, c.shape({4, 8, 1}))}));
  check_equal(c.run_one(), computed(DType::f32, {2, 3, 4}, [&](const Index& i) { return -x.at(i).f; }));
}

TEST_CASE("reductions over several dimensions, in any position") {
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{0}, {1}, {2}, {0, 2}, {0, 1}, {0, 1, 2}, std::vector<int64_t>{}}) {
    GraphCase c;
    Tensor x = sample(DType::f64, {2, 3, 4});
    Index kept;
    for (int64_t d = 0; d < 3; ++d)
      if (std::ranges::find(dims, d) == dims.end()) kept.push_back(x.shape[static_cast<size_t>(d)]);
    c.output(c.b.reduce(ReduceOp::sum, c.input(x), dims));
    check_equal(c.run_one(), computed(DType::f64, kept, [&](const Index& outer) {
                  double sum = 0;
                  for (int64_t i = 0; i < 24; ++i) {
                    Index at = {i / 12, i / 4 % 3, i % 4}, rest;
                    for (int64_t d = 0; d < 3; ++d)
                      if (std::ranges::find(dims, d) == dims.end())
                        rest.push_back(at[static_cast<size_t>(d)]);
                    if (rest == outer) sum += x.at(at).f;
                  }
                  return sum;
                }));
  }
}

TEST_CASE("reductions over nothing give the identity") {
  GraphCase c;
  graph::ValueId x = c.input(sample(DType::f32, {2, 0}));
  c.output(c.b.reduce(ReduceOp::sum, x, {1}));
  c.output(c.b.reduce(ReduceOp::prod, x, {0, 1}));
  std::vector<Tensor> results = c.run();
  check_equal(results[0], tensor(DType::f32, {2}, {0, 0}));
  check_equal(results[1], tensor(DType::f32, {}, {1}));
}

TEST_CASE("argmax and argmin give the first extremum, NaN before all") {
  GraphCase c;
  graph::ValueId x = c.input(tensor(DType::f32, {3, 4}, {1, 5, 5, 2, -1, NAN, 9, NAN, 3, 3, 3, 3}));
  c.output(c.b.reduce(ReduceOp::argmax, x, {1}));
  c.output(c.b.reduce(ReduceOp::argmin, x, {1}));
  c.output(c.b.reduce(ReduceOp::argmax, c.b.permute(x, {1, 0}), {1}));
  std::vector<Tensor> results = c.run();
  check_equal(results[0], tensor(DType::i64, {3}, {1, 1, 0}));
  check_equal(results[1], tensor(DType::i64, {3}, {0, 1, 0}));
  check_equal(results[2], tensor(DType::i64, {4}, {2, 1, 1, 1}));
}

TEST_CASE("scans carry along their dimension") {
  GraphCase c;
  Tensor x = sample(DType::f64, {2, 3, 2});
  c.output(c.b.node(graph::Op::scan, {c.input(x)},
                    {{graph::Attr::op, ReduceOp::sum}, {graph::Attr::dim, int64_t{1}}}, {})[0]);
  check_equal(c.run_one(), computed(DType::f64, {2, 3, 2}, [&](const Index& i) {
                double sum = 0;
                for (int64_t j = 0; j <= i[1]; ++j) sum += x.at({i[0], j, i[2]}).f;
                return sum;
              }));
}

TEST_CASE("scans of f32 are carried in f64") {
  GraphCase c;
  c.output(c.b.node(graph::Op::scan, {c.input(tensor(DType::f32, {4}, {16777216, 1, 1, 1}))},
                    {{graph::Attr::op, ReduceOp::sum}, {graph::Attr::dim, int64_t{0}}}, {})[0]);
  check_equal(c.run_one(), tensor(DType::f32, {4}, {16777216, 16777216, 16777218, 16777220}));
}

TEST_CASE("sizes of the call are bound at run time") {
  for (int64_t n : {0, 1, 5, 64}) {
    GraphCase c;
    sym::Expr s = c.size("s0", n);
    Tensor x = sample(DType::f64, {n, 3});
    graph::ValueId in = c.input(x, {}, {s, c.integer(3)});
    graph::ValueId total = c.b.reduce(ReduceOp::sum, in, {0}, true);
    graph::ValueId count = c.b.cast(c.b.size_value(s), DType::f64);
    c.output(c.b.apply(ScalarOp::sub, {in, c.b.apply(ScalarOp::div, {total, count})}));
    check_equal(c.run_one(), computed(DType::f64, {n, 3}, [&](const Index& i) {
                  double sum = 0;
                  for (int64_t j = 0; j < n; ++j) sum += x.at({j, i[1]}).f;
                  return x.at(i).f - sum / static_cast<double>(n);
                }));
  }
}

TEST_CASE("random numbers count row-major positions from the offset") {
  GraphCase c;
  graph::ValueId seed = c.input(tensor(DType::i64, {}, {1234}));
  c.output(c.b.node(graph::Op::random_uniform, {seed},
                    {{graph::Attr::offset, c.integer(100)}, {graph::Attr::shape, c.shape({2, 3})}}, {})[0]);
  check_equal(c.run_one(), computed(DType::f32, {2, 3}, [&](const Index& i) {
                Scalar operands[] = {Scalar::of_int(DType::i64, 1234),
                                     Scalar::of_int(DType::i64, 100 + 3 * i[0] + i[1])};
                return ops::evaluate(ScalarOp::random_uniform, DType::f32, operands).f;
              }));
}

}  // namespace
}  // namespace kerf::test
