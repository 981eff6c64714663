#include "run_graph.h"

namespace kerf::test {
namespace {

using graph::Attr;
using graph::Op;

using Dims = std::vector<int64_t>;

graph::ValueId index(GraphCase& c, const std::vector<graph::ValueId>& operands, Dims dims, int64_t dim,
                     bool wrap = true) {
  return c.b.node(Op::index, operands, {{Attr::dims, std::move(dims)}, {Attr::wrap, wrap}, {Attr::dim, dim}},
                  {})[0];
}

graph::ValueId index_put(GraphCase& c, const std::vector<graph::ValueId>& operands, Dims dims, int64_t dim,
                         bool accumulate) {
  return c.b.node(
      Op::index_put, operands,
      {{Attr::dims, std::move(dims)}, {Attr::wrap, true}, {Attr::dim, dim}, {Attr::accumulate, accumulate}},
      {})[0];
}

graph::ValueId scatter(GraphCase& c, const std::vector<graph::ValueId>& operands, int64_t dim,
                       std::string mode) {
  return c.b.node(Op::scatter, operands, {{Attr::dim, dim}, {Attr::mode, std::move(mode)}}, {})[0];
}

TEST_CASE("rows of a table, by indices of any shape") {
  GraphCase c;
  Tensor table = sample(DType::f32, {5, 3}), ids = tensor(DType::i64, {2, 2}, {4, 0, 0, 3});
  c.output(index(c, {c.input(table), c.input(ids)}, {0}, 0, false));
  check_equal(c.run_one(), computed(DType::f32, {2, 2, 3}, [&](const Index& i) {
                return table.at({ids.at({i[0], i[1]}).i, i[2]}).f;
              }));
}

TEST_CASE("two indices that broadcast, negative ones counted from the end") {
  GraphCase c;
  Tensor x = sample(DType::f32, {3, 4, 5});
  Tensor rows = tensor(DType::i64, {2, 1}, {-1, 1}), columns = tensor(DType::i64, {3}, {0, -5, 4});
  c.output(index(c, {c.input(x), c.input(rows), c.input(columns)}, {0, 2}, 0));
  check_equal(c.run_one(), computed(DType::f32, {2, 3, 4}, [&](const Index& i) {
                int64_t row = rows.at({i[0], 0}).i, column = columns.at({i[1]}).i;
                return x.at({(row + 3) % 3, i[2], (column + 5) % 5}).f;
              }));
}

TEST_CASE("the indices' shape stands where the node says") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 4, 3, 2});
  Tensor a = tensor(DType::i64, {2}, {3, 1}), b = tensor(DType::i64, {2}, {0, 2});
  c.output(index(c, {c.input(x), c.input(a), c.input(b)}, {1, 2}, 1));
  check_equal(c.run_one(), computed(DType::f32, {2, 2, 2}, [&](const Index& i) {
                return x.at({i[0], a.at({i[1]}).i, b.at({i[1]}).i, i[2]}).f;
              }));
}

TEST_CASE("indexing a view that is no strided one") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 3, 4}), ids = tensor(DType::i64, {3}, {5, 0, 2});
  graph::ValueId mixed = c.b.reshape(c.b.permute(c.input(x), {2, 1, 0}), c.shape({6, 4}));
  c.output(index(c, {mixed, c.input(ids)}, {0}, 0));
  check_equal(c.run_one(), computed(DType::f32, {3, 4}, [&](const Index& i) {
                int64_t linear = 4 * ids.at({i[0]}).i + i[1];
                return x.at({linear % 2, linear / 2 % 3, linear / 6}).f;
              }));
}

TEST_CASE("an index outside its bound is reported") {
  for (double bad : {5.0, -1.0}) {
    GraphCase c;
    c.output(index(c, {c.input(sample(DType::f32, {5, 3})), c.input(tensor(DType::i64, {2}, {0, bad}))}, {0},
                   0, false));
    c.run();
    CHECK(c.error.code == target::KernelError::kIndex);
    CHECK(c.error.index == static_cast<int64_t>(bad));
    CHECK(c.error.bound == 5);
  }
}

TEST_CASE("an index into a dimension that turns out empty is reported, nothing is read or written") {
  GraphCase c;
  sym::Expr s = c.size("s0", 0);
  graph::ValueId table = c.input(sample(DType::f32, {0, 3}), {}, {s, c.integer(3)});
  graph::ValueId ids = c.input(tensor(DType::i64, {1}, {0}));
  SUBCASE("read") { c.output(index(c, {table, ids}, {0}, 0)); }
  SUBCASE("written") {
    graph::ValueId one = c.b.constant(Scalar::of(DType::f32, 1));
    c.output(index_put(c, {table, one, ids}, {0}, 0, false));
  }
  c.run();
  CHECK(c.error.code == target::KernelError::kIndex);
  CHECK(c.error.bound == 0);
}

TEST_CASE("gather along a dimension") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 3, 4}), ids = tensor(DType::i64, {2, 1, 2}, {2, 0, 1, 1});
  c.output(c.b.node(Op::gather, {c.input(x), c.input(ids)}, {{Attr::dim, int64_t{1}}}, {})[0]);
  check_equal(c.run_one(), computed(DType::f32, {2, 1, 2},
                                    [&](const Index& i) { return x.at({i[0], ids.at(i).i, i[2]}).f; }));
}

TEST_CASE("index_put adds repeated rows and leaves the data alone") {
  GraphCase c;
  Tensor x = sample(DType::f64, {4, 2}), values = sample(DType::f64, {3, 2}, 3);
  Tensor ids = tensor(DType::i64, {3}, {2, -4, 2});
  graph::ValueId in = c.input(x);
  c.output(index_put(c, {in, c.input(values), c.input(ids)}, {0}, 0, true));
  check_equal(c.run_one(), computed(DType::f64, {4, 2}, [&](const Index& i) {
                double sum = x.at(i).f;
                for (int64_t k = 0; k < 3; ++k)
                  if ((ids.at({k}).i + 4) % 4 == i[0]) sum += values.at({k, i[1]}).f;
                return sum;
              }));
  check_equal(c.input_after(0), x);
  CHECK(c.launches() == 2);
}

TEST_CASE("index_put of one value at pairs of indices, the last of repeated ones staying") {
  GraphCase c;
  graph::ValueId zeros = c.b.full(c.shape({3, 3}), Scalar::of(DType::f32, 0));
  graph::ValueId rows = c.input(tensor(DType::i64, {3}, {0, 2, 0})),
                 columns = c.input(tensor(DType::i64, {3}, {1, 2, 1}));
  graph::ValueId values = c.input(tensor(DType::f32, {3}, {5, 6, 7}));
  c.output(index_put(c, {zeros, values, rows, columns}, {0, 1}, 0, false));
  check_equal(c.run_one(), tensor(DType::f32, {3, 3}, {0, 7, 0, 0, 0, 0, 0, 0, 6}));
}

TEST_CASE("scatter in every mode") {
  Tensor x = tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor ids = tensor(DType::i64, {2, 2}, {2, 2, 0, 1}), source = tensor(DType::f32, {2, 2}, {10, -20, 7, 1});
  std::pair<const char*, std::vector<double>> expected[] = {
      {"assign", {1, 2, -20, 7, 1, 6}}, {"add", {1, 2, -7, 11, 6, 6}}, {"multiply", {1, 2, -600, 28, 5, 6}},
      {"amin", {1, 2, -20, 4, 1, 6}},   {"amax", {1, 2, 10, 7, 5, 6}},
  };
  for (const auto& [mode, elements] : expected) {
    GraphCase c;
    c.output(scatter(c, {c.input(x), c.input(ids), c.input(source)}, 1, mode));
    check_equal(c.run_one(), tensor(DType::f32, {2, 3}, elements));
  }
}

TEST_CASE("scatter-add into bf16 rounds every sum") {
  GraphCase c;
  graph::ValueId x = c.input(tensor(DType::bf16, {1}, {256}));
  graph::ValueId ids = c.input(tensor(DType::i64, {2}, {0, 0}));
  c.output(scatter(c, {x, ids, c.input(tensor(DType::bf16, {2}, {1, 1}))}, 0, "add"));
  check_equal(c.run_one(), tensor(DType::bf16, {1}, {256}));
}

}  // namespace
}  // namespace kerf::test
