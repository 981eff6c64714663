#include "run_graph.h"

namespace kerf::test {
namespace {

using ops::ScalarOp;

TEST_CASE("an assign writes the input with its strides") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 3}), y = sample(DType::f32, {2, 3}, 1);
  graph::ValueId in = c.input(x, c.shape({1, 2}));
  graph::ValueId after = c.b.assign(in, c.b.apply(ScalarOp::add, {in, c.input(y)}));
  c.output(c.b.apply(ScalarOp::neg, {after}));
  check_equal(c.run_one(),
              computed(DType::f32, {2, 3}, [&](const Index& i) { return -(x.at(i).f + y.at(i).f); }));
  check_equal(c.input_after(0),
              computed(DType::f32, {2, 3}, [&](const Index& i) { return x.at(i).f + y.at(i).f; }));
  CHECK(c.launches() == 3);  // no copy: nobody reads the old value later
}

TEST_CASE("readers of the old value after the assign still see it") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 3});
  graph::ValueId in = c.input(x);
  graph::ValueId early_view = c.b.permute(in, {1, 0});
  graph::ValueId after = c.b.assign(in, c.b.full(c.shape({2, 3}), Scalar::of(DType::f32, 9)));
  graph::ValueId late_view = c.b.slice(in, 1, c.integer(1), c.integer(1), 1);
  c.output(c.b.apply(ScalarOp::neg, {early_view}));
  c.output(c.b.apply(ScalarOp::neg, {late_view}));
  c.output(c.b.apply(ScalarOp::neg, {after}));
  c.output(in);
  std::vector<Tensor> results = c.run();
  check_equal(results[0],
              computed(DType::f32, {3, 2}, [&](const Index& i) { return -x.at({i[1], i[0]}).f; }));
  check_equal(results[1], computed(DType::f32, {2, 1}, [&](const Index& i) { return -x.at({i[0], 1}).f; }));
  check_equal(results[2], computed(DType::f32, {2, 3}, [&](const Index&) { return -9; }));
  check_equal(results[3], x);
  CHECK(c.program.outputs[3].alias_input == -1);
}

TEST_CASE("an input may be assigned its own transpose") {
  GraphCase c;
  Tensor x = sample(DType::f32, {3, 3});
  graph::ValueId in = c.input(x);
  c.output(c.b.assign(in, c.b.permute(in, {1, 0})));
  Tensor transposed = computed(DType::f32, {3, 3}, [&](const Index& i) { return x.at({i[1], i[0]}).f; });
  check_equal(c.run_one(), transposed);
  check_equal(c.input_after(0), transposed);
  CHECK(c.program.outputs[0].alias_input == 0);
}

TEST_CASE("each of several assigns leaves its own value to its readers") {
  GraphCase c;
  Tensor x = sample(DType::f32, {4});
  graph::ValueId in = c.input(x);
  graph::ValueId first = c.b.assign(in, c.b.apply(ScalarOp::neg, {in}));
  graph::ValueId second = c.b.assign(in, c.b.flip(first, {0}));
  graph::ValueId third = c.b.assign(in, c.b.apply(ScalarOp::add, {second, in}));
  c.output(c.b.apply(ScalarOp::abs, {first}));
  c.output(c.b.apply(ScalarOp::mul, {second, third}));
  std::vector<Tensor> results = c.run();
  auto reversed = [&](const Index& i) { return -x.at({3 - i[0]}).f; };
  check_equal(results[0], computed(DType::f32, {4}, [&](const Index& i) { return std::abs(x.at(i).f); }));
  check_equal(results[1], computed(DType::f32, {4},
                                   [&](const Index& i) { return reversed(i) * (reversed(i) + x.at(i).f); }));
  check_equal(c.input_after(0),
              computed(DType::f32, {4}, [&](const Index& i) { return reversed(i) + x.at(i).f; }));
}

TEST_CASE("write-backs of tensors that kernels do not know are library calls") {
  GraphCase c;
  graph::TensorType type{DType::f32, c.shape({2, 2}), c.shape({2, 1}), "complex64"};
  graph::ValueId in = c.b.input(0, type), other = c.b.input(1, type);
  c.b.assign(in, other);
  c.output(in);  // the old value
  loop::Program program = lower_only(c);
  REQUIRE(program.steps.size() == 2);
  const auto& clone = std::get<target::ExternCall>(program.steps[0]);
  const auto& copy = std::get<target::ExternCall>(program.steps[1]);
  CHECK(clone.op == "aten.clone.default");
  CHECK(copy.op == "aten.copy_.default");
  CHECK(std::get<target::TensorView>(copy.arguments[0].value).buffer == 0);
  CHECK(std::get<target::TensorView>(copy.arguments[1].value).buffer == 1);
  CHECK(program.outputs[0].view.buffer == clone.results[0].buffer);
  CHECK(program.outputs[0].alias_input == -1);
}

}  // namespace
}  // namespace kerf::test
