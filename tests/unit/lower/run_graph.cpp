#include "graph/verify.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "lower/lower.h"

#include "run_graph.h"

namespace kerf::test {

namespace {

int64_t product(const Index& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

void for_each_position(const Index& shape, const std::function<void(const Index&)>& visit) {
  for (int64_t linear = 0; linear < product(shape); ++linear) {
    Index position(shape.size());
    int64_t rest = linear;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) position[d] = rest % shape[d];
    visit(position);
  }
}

Index evaluated(const loop::ProgramMemory& memory, const std::vector<sym::Expr>& exprs) {
  Index values;
  for (sym::Expr expr : exprs) values.push_back(memory.evaluate(expr));
  return values;
}

Tensor read(const loop::ProgramMemory& memory, const target::TensorView& view) {
  return {view.dtype, evaluated(memory, view.shape), memory.read(view)};
}

// [b, n, k] x [b, k, m] in double, rounded once.
Tensor product_of(const Tensor& left, const Tensor& right) {
  Index shape = left.shape;
  shape.back() = right.shape.back();
  return computed(left.dtype, shape, [&](const Index& position) {
    double sum = 0;
    Index l = position, r = position;
    for (int64_t k = 0; k < left.shape.back(); ++k) {
      l.back() = k;
      r[r.size() - 2] = k;
      sum += left.at(l).as_double() * right.at(r).as_double();
    }
    return sum;
  });
}

void call_matmul(const target::ExternCall& call, loop::ProgramMemory& memory) {
  auto operand = [&](size_t i) {
    return read(memory, std::get<target::TensorView>(call.arguments.at(i).value));
  };
  auto factor = [&](const std::string& keyword) {
    for (const target::ExternArgument& argument : call.arguments)
      if (argument.keyword == keyword) return std::get<double>(argument.value);
    return 1.0;
  };
  bool has_bias = call.op == "aten.addmm.default" || call.op == "aten.baddbmm.default";
  REQUIRE((has_bias || call.op == "aten.mm.default" || call.op == "aten.bmm.default"));
  Tensor result = product_of(operand(has_bias ? 1 : 0), operand(has_bias ? 2 : 1));
  if (has_bias) {
    Tensor bias = operand(0);
    result = computed(result.dtype, result.shape, [&](const Index& position) {
      Index aligned(position.end() - static_cast<std::ptrdiff_t>(bias.shape.size()), position.end());
      for (size_t d = 0; d < aligned.size(); ++d)
        if (bias.shape[d] == 1) aligned[d] = 0;
      return factor("beta") * bias.at(aligned).as_double() +
             factor("alpha") * result.at(position).as_double();
    });
  }
  sym::Context& context = call.results.at(0).shape.at(0).context();
  memory.write(loop::view_of(context, call.results.at(0)), result.elements);
}

}  // namespace

const Scalar& Tensor::at(const Index& position) const {
  REQUIRE(position.size() == shape.size());
  int64_t linear = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    REQUIRE((position[d] >= 0 && position[d] < shape[d]));
    linear = linear * shape[d] + position[d];
  }
  return elements.at(static_cast<size_t>(linear));
}

Tensor tensor(DType dtype, Index shape, const std::vector<double>& elements) {
  REQUIRE(static_cast<int64_t>(elements.size()) == product(shape));
  Tensor result{dtype, std::move(shape), {}};
  for (double element : elements) result.elements.push_back(Scalar::of(dtype, element));
  return result;
}

Tensor sample(DType dtype, Index shape, int seed) {
  int64_t next = 7 * seed;
  return computed(dtype, std::move(shape), [&](const Index&) {
    ++next;
    return (next % 2 ? 0.5 : -0.25) * static_cast<double>(next);
  });
}

Tensor computed(DType dtype, Index shape, const std::function<double(const Index&)>& element) {
  Tensor result{dtype, shape, {}};
  for_each_position(
      shape, [&](const Index& position) { result.elements.push_back(Scalar::of(dtype, element(position))); });
  return result;
}

std::vector<sym::Expr> GraphCase::shape(const Index& extents) {
  std::vector<sym::Expr> exprs;
  for (int64_t extent : extents) exprs.push_back(context.constant(extent));
  return exprs;
}

sym::Expr GraphCase::size(const std::string& name, int64_t value, sym::Range range) {
  sym::Expr symbol = context.symbol(name, sym::SymbolKind::size);
  graph.sizes.push_back({symbol, range, {}});
  sizes_.push_back(value);
  return symbol;
}

graph::ValueId GraphCase::input(Tensor data, std::vector<sym::Expr> strides,
                                std::vector<sym::Expr> symbolic) {
  std::vector<sym::Expr> extents = symbolic.empty() ? shape(data.shape) : std::move(symbolic);
  if (strides.empty()) strides = graph::contiguous_strides(context, extents);
  graph::ValueId value = b.input(static_cast<int>(inputs_.size()), {data.dtype, extents, strides});
  inputs_.push_back(std::move(data));
  input_values_.push_back(value);
  return value;
}

void GraphCase::output(graph::ValueId value) {
  graph.outputs.push_back({.kind = graph::Output::Kind::tensor, .value = value});
}

void GraphCase::output(graph::ValueId value, const Index& strides) {
  graph.values[value].type.strides = shape(strides);
  output(value);
}

loop::Program lower_only(GraphCase& c) {
  graph::check_valid(c.graph, "before lowering");
  loop::Program program = lower::lower(c.graph);
  for (const auto& step : program.steps)
    if (const auto* launch = std::get_if<loop::Launch>(&step)) {
      std::vector<std::string> errors = loop::verify(launch->kernel);
      INFO(loop::to_text(launch->kernel));
      CHECK_MESSAGE(errors.empty(), (errors.empty() ? "" : errors[0]));
    }
  return program;
}

std::vector<Tensor> GraphCase::run() {
  program = lower_only(*this);
  loop::ProgramMemory memory(program, sizes_);
  auto input_view = [&](size_t i) -> target::TensorView {
    const graph::TensorType& type = graph.type(input_values_[i]);
    return {memory.input(static_cast<int>(i)), type.dtype, type.shape, type.strides, integer(0)};
  };
  for (size_t i = 0; i < inputs_.size(); ++i) memory.write(input_view(i), inputs_[i].elements);
  error = {};
  loop::interpret(program, memory, error, call_matmul);
  inputs_after_.clear();
  for (size_t i = 0; i < inputs_.size(); ++i) inputs_after_.push_back(read(memory, input_view(i)));
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const target::TensorView& result = program.outputs[i].view;
    CHECK(result.strides == graph.type(graph.outputs[i].value).strides);
    outputs.push_back(read(memory, result));
  }
  return outputs;
}

Tensor GraphCase::run_one() {
  std::vector<Tensor> outputs = run();
  REQUIRE(outputs.size() == 1);
  return outputs[0];
}

Tensor GraphCase::input_after(int index) const { return inputs_after_.at(static_cast<size_t>(index)); }

size_t GraphCase::launches() const {
  size_t count = 0;
  for (const auto& step : program.steps) count += std::holds_alternative<loop::Launch>(step);
  return count;
}

void check_equal(const Tensor& actual, const Tensor& expected) {
  CHECK(actual.dtype == expected.dtype);
  REQUIRE(actual.shape == expected.shape);
  REQUIRE(actual.elements.size() == expected.elements.size());
  for (size_t i = 0; i < actual.elements.size(); ++i) {
    INFO("element ", i, ": ", loop::to_text(actual.elements[i]), " for ",
         loop::to_text(expected.elements[i]));
    CHECK(actual.elements[i] == expected.elements[i]);
  }
}

}  // namespace kerf::test
