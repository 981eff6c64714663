#include "run_graph.h"

namespace kerf::test {
namespace {

using graph::Attr;
using graph::Op;
using ops::ScalarOp;

double dot(const Tensor& x, const Tensor& y, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t k = 0; k < x.shape[1]; ++k) sum += x.at({row, k}).f * y.at({k, column}).f;
  return sum;
}

const target::ExternCall& only_call(const loop::Program& program) {
  const target::ExternCall* found = nullptr;
  for (const auto& step : program.steps)
    if (const auto* call = std::get_if<target::ExternCall>(&step)) {
      REQUIRE(found == nullptr);
      found = call;
    }
  REQUIRE(found != nullptr);
  return *found;
}

const target::TensorView& tensor_argument(const target::ExternCall& call, size_t i) {
  return std::get<target::TensorView>(call.arguments.at(i).value);
}

TEST_CASE("matrix products take transposed weights and expanded biases where they are") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 3}), weight = sample(DType::f32, {4, 3}, 1),
         bias = sample(DType::f32, {4}, 2);
  graph::ValueId in = c.input(x), transposed = c.b.permute(c.input(weight), {1, 0});
  graph::ValueId rows = c.b.expand(c.input(bias), c.shape({2, 4}));
  c.output(c.b.node(Op::addmm, {rows, in, transposed}, {{Attr::alpha, 2.0}, {Attr::beta, 0.5}}, {})[0]);
  check_equal(c.run_one(), computed(DType::f32, {2, 4}, [&](const Index& i) {
                double sum = 0;
                for (int64_t k = 0; k < 3; ++k) sum += x.at({i[0], k}).f * weight.at({i[1], k}).f;
                return 0.5 * bias.at({i[1]}).f + 2 * static_cast<float>(sum);
              }));
  CHECK(c.launches() == 0);
  const target::ExternCall& call = only_call(c.program);
  CHECK(call.is_matmul_like);
  CHECK(tensor_argument(call, 0).strides == c.shape({0, 1}));
  CHECK(tensor_argument(call, 2).strides == c.shape({1, 3}));
}

TEST_CASE("operands that no strides express are copied, once each") {
  GraphCase c;
  Tensor x = sample(DType::f32, {4, 3});
  graph::ValueId mixed = c.b.reshape(c.b.permute(c.input(x), {1, 0}), c.shape({2, 6}));
  graph::ValueId back = c.b.flip(c.b.permute(mixed, {1, 0}), {0});
  c.output(c.b.node(Op::mm, {mixed, back}, {}, {})[0]);
  c.output(c.b.node(Op::mm, {back, mixed}, {}, {})[0]);
  std::vector<Tensor> results = c.run();
  auto left = computed(DType::f32, {2, 6}, [&](const Index& i) {
    int64_t linear = 6 * i[0] + i[1];
    return x.at({linear % 4, linear / 4}).f;
  });
  auto right = computed(DType::f32, {6, 2}, [&](const Index& i) { return left.at({i[1], 5 - i[0]}).f; });
  check_equal(results[0],
              computed(DType::f32, {2, 2}, [&](const Index& i) { return dot(left, right, i[0], i[1]); }));
  check_equal(results[1],
              computed(DType::f32, {6, 6}, [&](const Index& i) { return dot(right, left, i[0], i[1]); }));
  CHECK(c.launches() == 2);
}

TEST_CASE("externs get eager's strides and keep their argument lists") {
  GraphCase c;
  graph::ValueId x = c.input(sample(DType::f32, {2, 3}));
  graph::ValueId sum = c.b.apply(ScalarOp::add, {x, x});
  c.graph.values[sum].type.strides = c.shape({1, 2});  // as eager laid it out
  target::TensorView operand{.buffer = 0};
  target::ExternArgumentList list = {{operand, ""}};
  target::ExternArgumentList arguments = {{list, ""}, {true, "flag"}, {c.integer(-1), ""}};
  std::vector<graph::ValueId> results = c.b.external(
      "aten.thing.default", {sum}, arguments, "no lowering for aten.thing",
      {{DType::f32, c.shape({2, 3}), c.shape({1, 2})}, {DType::i64, c.shape({2}), c.shape({1})}});
  c.output(results[0]);
  loop::Program program = lower_only(c);
  const target::ExternCall& call = only_call(program);
  CHECK(call.op == "aten.thing.default");
  CHECK(call.reason == "no lowering for aten.thing");
  CHECK_FALSE(call.is_matmul_like);
  const auto& view = std::get<target::TensorView>(
      std::get<target::ExternArgumentList>(call.arguments.at(0).value).at(0).value);
  CHECK(view.strides == c.shape({1, 2}));
  CHECK(view.shape == c.shape({2, 3}));
  CHECK(program.buffers.at(view.buffer).kind == loop::BufferKind::temp);
  CHECK(call.arguments.at(1).keyword == "flag");
  CHECK(call.results.at(1).buffer == target::kNoBuffer);
  const loop::ProgramBuffer& result = program.buffers.at(call.results.at(0).buffer);
  CHECK(result.written_by_extern);
  CHECK(result.kind == loop::BufferKind::output);
  CHECK(program.outputs.at(0).view.buffer == call.results.at(0).buffer);
  CHECK(program.steps.size() == 3);  // the sum, its copy, the call
}

TEST_CASE("an output is the buffer it is in when that has eager's strides") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 3});
  graph::ValueId y = c.b.apply(ScalarOp::neg, {c.input(x)});
  c.output(c.b.permute(y, {1, 0}), {1, 3});
  c.output(c.b.slice(y, 1, c.integer(1), c.integer(2), 1), {3, 1});
  std::vector<Tensor> results = c.run();
  check_equal(results[0],
              computed(DType::f32, {3, 2}, [&](const Index& i) { return -x.at({i[1], i[0]}).f; }));
  check_equal(results[1],
              computed(DType::f32, {2, 2}, [&](const Index& i) { return -x.at({i[0], 1 + i[1]}).f; }));
  CHECK(c.launches() == 1);
  CHECK(c.view(0).buffer == c.view(1).buffer);
  CHECK(c.program.buffers[c.view(0).buffer].kind == loop::BufferKind::output);
}

TEST_CASE("an output with other strides is copied") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 3, 2});
  graph::ValueId y = c.b.apply(ScalarOp::neg, {c.input(x)});
  c.output(y, {2, 4, 1});                  // permuted
  c.output(c.b.flip(y, {0}), {12, 4, 1});  // with gaps
  std::vector<Tensor> results = c.run();
  check_equal(results[0], computed(DType::f32, {2, 3, 2}, [&](const Index& i) { return -x.at(i).f; }));
  check_equal(results[1], computed(DType::f32, {2, 3, 2},
                                   [&](const Index& i) { return -x.at({1 - i[0], i[1], i[2]}).f; }));
  CHECK(c.launches() == 3);
}

TEST_CASE("constant and expanded outputs") {
  GraphCase c;
  Tensor x = sample(DType::f32, {3});
  c.output(c.b.full(c.shape({2, 2}), Scalar::of(DType::f32, 4)), {2, 1});
  c.output(c.b.full(c.shape({2, 2}), Scalar::of(DType::f32, 4)), {0, 0});
  c.output(c.b.expand(c.b.apply(ScalarOp::neg, {c.input(x)}), c.shape({2, 3})), {0, 1});
  c.output(c.b.iota(c.integer(3), c.integer(0), c.integer(2), DType::i64));
  std::vector<Tensor> results = c.run();
  check_equal(results[0], tensor(DType::f32, {2, 2}, {4, 4, 4, 4}));
  check_equal(results[1], results[0]);
  check_equal(results[2], computed(DType::f32, {2, 3}, [&](const Index& i) { return -x.at({i[1]}).f; }));
  check_equal(results[3], tensor(DType::i64, {3}, {0, 2, 4}));
}

TEST_CASE("an output that is a view of an input shares its storage, a copy does not") {
  GraphCase c;
  Tensor x = sample(DType::f32, {2, 3});
  graph::ValueId in = c.input(x);
  c.output(c.b.permute(in, {1, 0}), {1, 3});
  c.output(c.b.copy(in, DType::f32));
  std::vector<Tensor> results = c.run();
  check_equal(results[1], x);
  CHECK(c.program.outputs[0].alias_input == 0);
  CHECK(c.program.outputs[1].alias_input == -1);
  CHECK(c.launches() == 1);
}

TEST_CASE("outputs that are integers or nothing") {
  GraphCase c;
  sym::Expr s = c.size("s0", 3);
  c.graph.outputs.push_back({.kind = graph::Output::Kind::integer, .value = {}, .integer = s + 1});
  c.graph.outputs.push_back({});
  loop::Program program = lower_only(c);
  REQUIRE(program.outputs.size() == 2);
  CHECK(program.outputs[0].integer == s + 1);
  CHECK(program.outputs[1].kind == target::ProgramOutput::Kind::none);
}

TEST_CASE("a seed is drawn by the library") {
  GraphCase c;
  c.output(c.b.node(Op::draw_seed, {}, {}, {})[0]);
  loop::Program program = lower_only(c);
  CHECK(only_call(program).op == "aten.randint.low");
  CHECK(program.buffers.at(only_call(program).results.at(0).buffer).dtype == DType::i64);
}

}  // namespace
}  // namespace kerf::test
