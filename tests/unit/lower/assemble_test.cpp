#include <cmath>

#include "run_graph.h"

namespace kerf::test {
namespace {

using graph::Attr;
using graph::Op;

graph::ValueId cat(GraphCase& c, const std::vector<graph::ValueId>& pieces, int64_t dim) {
  return c.b.node(Op::cat, pieces, {{Attr::dim, dim}}, {})[0];
}

graph::ValueId pad(GraphCase& c, graph::ValueId x, const Index& low, const Index& high, Scalar value) {
  return c.b.node(Op::pad, {x},
                  {{Attr::value, value}, {Attr::low, c.shape(low)}, {Attr::high, c.shape(high)}}, {})[0];
}

TEST_CASE("pieces side by side, empty, constant and permuted ones among them") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 3}), y = sample(DType::f32, {1, 2}, 4);
  graph::ValueId ones = c.b.full(c.shape({2, 1}), Scalar::of(DType::f32, 1));
  graph::ValueId empty = c.input(sample(DType::f32, {2, 0}));
  graph::ValueId column = c.b.permute(c.input(y), {1, 0});
  c.output(cat(c, {c.input(x), empty, ones, column}, 1));
  check_equal(c.run_one(), computed(DType::f32, {2, 5}, [&](const Index& i) {
                return i[1] < 3 ? x.at(i).f : i[1] == 3 ? 1.0 : y.at({0, i[0]}).f;
              }));
  CHECK(c.launches() == 3);
}

TEST_CASE("pieces of sizes of the call") {
  for (int64_t n : {0, 3}) {
    GraphCase c;
    sym::Expr s = c.size("s0", n);
    Tensor x = sample(DType::f32, {n, 2}), y = sample(DType::f32, {2, 2}, 2);
    graph::ValueId in = c.input(x, {}, {s, c.integer(2)});
    c.output(cat(c, {in, c.input(y), in}, 0));
    check_equal(c.run_one(), computed(DType::f32, {2 * n + 2, 2}, [&](const Index& i) {
                  if (i[0] < n) return x.at(i).f;
                  return i[0] < n + 2 ? y.at({i[0] - n, i[1]}).f : x.at({i[0] - n - 2, i[1]}).f;
                }));
  }
}

TEST_CASE("a reshape of a cat is read from its buffer") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 3});
  graph::ValueId in = c.input(x);
  graph::ValueId both = c.b.reshape(cat(c, {in, in}, 1), c.shape({3, 4}));
  c.output(c.b.apply(ops::ScalarOp::neg, {both}));
  check_equal(c.run_one(), computed(DType::f32, {3, 4}, [&](const Index& i) {
                int64_t linear = 4 * i[0] + i[1];
                return -x.at({linear / 6, linear % 6 % 3}).f;
              }));
}

TEST_CASE("pads on both sides, one side, none, and negative ones") {
  struct Case {
    Index low, high;
  };
  for (const auto& [low, high] : {Case{{1, 0}, {2, 3}},
                                  {{0, 2}, {0, 0}},
                                  {{0, 0}, {0, 0}},
                                  {{-1, 0}, {0, -2}},
                                  {{-1, 1}, {2, -1}},
                                  {{-2, -2}, {-1, 3}}}) {
    GraphCase c;
    Tensor x = sample(DType::f32, {3, 4});
    c.output(pad(c, c.input(x), low, high, Scalar::of(DType::f32, -INFINITY)));
    Index shape = {3 + low[0] + high[0], 4 + low[1] + high[1]};
    check_equal(c.run_one(), computed(DType::f32, shape, [&](const Index& i) {
                  Index at = {i[0] - low[0], i[1] - low[1]};
                  bool inside = at[0] >= 0 && at[0] < 3 && at[1] >= 0 && at[1] < 4;
                  return inside ? x.at(at).f : -INFINITY;
                }));
  }
}

TEST_CASE("pads of constants, iotas and views that strides cannot express") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 3});
  c.output(pad(c, c.b.full(c.shape({2}), Scalar::of(DType::f32, 5)), {1}, {1}, Scalar::of(DType::f32, 0)));
  c.output(pad(c, c.b.iota(c.integer(2), c.integer(3), c.integer(1), DType::i64), {0}, {2},
               Scalar::of_int(DType::i64, -1)));
  c.output(pad(c, c.b.reshape(c.b.permute(c.input(x), {1, 0}), c.shape({6})), {1}, {1},
               Scalar::of(DType::f32, 0)));
  std::vector<Tensor> results = c.run();
  check_equal(results[0], tensor(DType::f32, {4}, {0, 5, 5, 0}));
  check_equal(results[1], tensor(DType::i64, {4}, {3, 4, -1, -1}));
  check_equal(results[2], computed(DType::f32, {8}, [&](const Index& i) {
                return i[0] < 1 || i[0] > 6 ? 0.0 : x.at({(i[0] - 1) % 2, (i[0] - 1) / 2}).f;
              }));
}

}  // namespace
}  // namespace kerf::test
