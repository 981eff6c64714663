#include "run_graph.h"

namespace kerf::test {
namespace {

using ops::ScalarOp;

// The negated elements of a view of a 2 x 3 x 4 input.
struct ViewCase : GraphCase {
  Tensor x = sample(DType::f32, {2, 3, 4});
  graph::ValueId in = input(x);
  Tensor negated(graph::ValueId view) {
    output(b.apply(ScalarOp::neg, {view}));
    Tensor result = run_one();
    CHECK(launches() == 1);
    return result;
  }
};

TEST_CASE_FIXTURE(ViewCase, "permute") {
  check_equal(negated(b.permute(in, {2, 0, 1})),
              computed(DType::f32, {4, 2, 3}, [&](const Index& i) { return -x.at({i[1], i[2], i[0]}).f; }));
}

TEST_CASE_FIXTURE(ViewCase, "reshape that strides can express") {
  check_equal(negated(b.reshape(in, shape({6, 1, 2, 2}))),
              computed(DType::f32, {6, 1, 2, 2}, [&](const Index& i) {
                int64_t linear = 4 * i[0] + 2 * i[2] + i[3];
                return -x.at({linear / 12, linear / 4 % 3, linear % 4}).f;
              }));
}

TEST_CASE_FIXTURE(ViewCase, "reshape across a permute") {
  graph::ValueId mixed = b.reshape(b.permute(in, {2, 1, 0}), shape({6, 4}));
  check_equal(negated(mixed), computed(DType::f32, {6, 4}, [&](const Index& i) {
                int64_t linear = 4 * i[0] + i[1];  // in [4, 3, 2]
                return -x.at({linear % 2, linear / 2 % 3, linear / 6}).f;
              }));
}

TEST_CASE_FIXTURE(ViewCase, "views of a reshape that is no strided view") {
  graph::ValueId mixed = b.reshape(b.permute(in, {2, 1, 0}), shape({6, 4}));
  graph::ValueId part = b.flip(b.slice(mixed, 0, integer(1), integer(2), 3), {1});
  check_equal(negated(part), computed(DType::f32, {2, 4}, [&](const Index& i) {
                int64_t linear = 4 * (1 + 3 * i[0]) + (3 - i[1]);
                return -x.at({linear % 2, linear / 2 % 3, linear / 6}).f;
              }));
}

TEST_CASE_FIXTURE(ViewCase, "slice with a step, then flip") {
  graph::ValueId part = b.flip(b.slice(in, 2, integer(1), integer(2), 2), {0, 2});
  check_equal(negated(part), computed(DType::f32, {2, 3, 2}, [&](const Index& i) {
                return -x.at({1 - i[0], i[1], 1 + 2 * (1 - i[2])}).f;
              }));
}

TEST_CASE_FIXTURE(ViewCase, "expand of a one-element dimension and new ones") {
  graph::ValueId row = b.expand(b.slice(in, 1, integer(2), integer(1), 1), shape({2, 2, 3, 4}));
  check_equal(negated(row),
              computed(DType::f32, {2, 2, 3, 4}, [&](const Index& i) { return -x.at({i[1], 2, i[3]}).f; }));
}

TEST_CASE_FIXTURE(ViewCase, "reshape of an expanded value") {
  graph::ValueId row = b.expand(b.slice(in, 1, integer(2), integer(1), 1), shape({2, 3, 4}));
  check_equal(negated(b.reshape(row, shape({6, 4}))),
              computed(DType::f32, {6, 4}, [&](const Index& i) { return -x.at({i[0] / 3, 2, i[1]}).f; }));
}

TEST_CASE_FIXTURE(ViewCase, "as_strided over the elements in row-major order, whatever the layout") {
  for (bool transposed : {false, true}) {
    ViewCase c;
    graph::ValueId source = transposed ? c.b.permute(c.in, {2, 1, 0}) : c.in;
    graph::ValueId windows = c.b.node(graph::Op::as_strided, {source},
                                      {{graph::Attr::shape, c.shape({5, 3})},
                                       {graph::Attr::strides, c.shape({4, 1})},
                                       {graph::Attr::offset, c.integer(2)}},
                                      {{DType::f32, c.shape({5, 3}), c.shape({4, 1})}})[0];
    check_equal(c.negated(windows), computed(DType::f32, {5, 3}, [&](const Index& i) {
                  int64_t linear = 2 + 4 * i[0] + i[1];
                  return transposed ? -c.x.at({linear % 2, linear / 2 % 3, linear / 6}).f
                                    : -c.x.at({linear / 12, linear / 4 % 3, linear % 4}).f;
                }));
  }
}

TEST_CASE("views of empty values") {
  GraphCase c;
  graph::ValueId x = c.input(sample(DType::f32, {3, 0, 2}));
  c.output(c.b.apply(ScalarOp::neg, {c.b.reshape(c.b.permute(x, {2, 0, 1}), c.shape({0, 7}))}));
  c.output(c.b.apply(ScalarOp::neg, {c.b.slice(x, 0, c.integer(3), c.integer(0), 1)}));
  std::vector<Tensor> results = c.run();
  CHECK(results[0].shape == Index{0, 7});
  CHECK(results[1].shape == Index{0, 0, 2});
}

TEST_CASE("reshapes with sizes of the call split and join dimensions") {
  for (int64_t n : {1, 5}) {
    GraphCase c;
    sym::Expr s = c.size("s0", n, {1, 512});
    Tensor x = sample(DType::f32, {2, n, 12});
    graph::ValueId in = c.input(x, {}, {c.integer(2), s, c.integer(12)});
    // Attention heads: [2, s, 12] -> [2, s, 3, 4] -> [2, 3, s, 4] -> [2 * s, 12] again.
    graph::ValueId heads =
        c.b.permute(c.b.reshape(in, {c.integer(2), s, c.integer(3), c.integer(4)}), {0, 2, 1, 3});
    graph::ValueId scaled = c.b.apply(ScalarOp::neg, {heads});
    graph::ValueId joined = c.b.reshape(c.b.permute(scaled, {0, 2, 1, 3}), {s * 2, c.integer(12)});
    c.output(c.b.apply(ScalarOp::neg, {joined}));
    check_equal(c.run_one(), computed(DType::f32, {2 * n, 12},
                                      [&](const Index& i) { return x.at({i[0] / n, i[0] % n, i[1]}).f; }));
  }
}

TEST_CASE("a reshape that mixes sizes of the call") {
  for (int64_t n : {1, 2, 7}) {
    GraphCase c;
    sym::Expr s = c.size("s0", n, {1, 512});
    Tensor x = sample(DType::f32, {n, 6});
    graph::ValueId in = c.input(x, {}, {s, c.integer(6)});
    c.output(c.b.apply(ScalarOp::neg, {c.b.reshape(c.b.permute(in, {1, 0}), {s, c.integer(6)})}));
    check_equal(c.run_one(), computed(DType::f32, {n, 6}, [&](const Index& i) {
                  int64_t linear = 6 * i[0] + i[1];
                  return -x.at({linear % n, linear / n}).f;
                }));
  }
}

}  // namespace
}  // namespace kerf::test
