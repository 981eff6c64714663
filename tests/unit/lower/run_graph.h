#pragma once
// Builds graphs for the tests of lowering and runs what they are lowered to: every kernel is verified, launches go
// through the interpreter, matrix products are computed naively, outputs are checked to have the traced strides.
#include <functional>
#include <initializer_list>
#include <vector>

#include "graph/build.h"
#include "loop/interp_program.h"

// doctest's CHECK from here on.
#undef CHECK
#include <doctest/doctest.h>

namespace kerf::test {

using Index = std::vector<int64_t>;

// Elements in row-major order.
struct Tensor {
  DType dtype = DType::f32;
  Index shape;
  std::vector<Scalar> elements;

  const Scalar& at(const Index& position) const;
};

Tensor tensor(DType dtype, Index shape, const std::vector<double>& elements);

// Distinct, exactly representable values of both signs.
Tensor sample(DType dtype, Index shape, int seed = 0);

// The tensor whose element at each position is `element(position)`.
Tensor computed(DType dtype, Index shape, const std::function<double(const Index&)>& element);

// One graph and its inputs.
class GraphCase {
 public:
  GraphCase() { graph.context = &context; }

  sym::Expr integer(int64_t value) { return context.constant(value); }
  std::vector<sym::Expr> shape(const Index& extents);
  sym::Expr size(const std::string& name, int64_t value, sym::Range range = {0, 4096});

  // An input that holds `data`; row-major strides unless given. Symbolic shapes are given apart.
  graph::ValueId input(Tensor data, std::vector<sym::Expr> strides = {}, std::vector<sym::Expr> shape = {});
  void output(graph::ValueId value);
  // As output, with other strides traced for it.
  void output(graph::ValueId value, const Index& strides);

  // Lowers and runs; the outputs' elements.
  std::vector<Tensor> run();
  Tensor run_one();
  // An input's elements after `run`.
  Tensor input_after(int index) const;
  const target::TensorView& view(size_t output) const { return program.outputs.at(output).view; }
  size_t launches() const;

  sym::Context context;
  graph::Graph graph;
  graph::Builder b{graph};
  loop::Program program;
  target::KernelError error;

 private:
  std::vector<Tensor> inputs_;
  std::vector<graph::ValueId> input_values_;
  std::vector<int64_t> sizes_;
  std::vector<Tensor> inputs_after_;
};

// The program, verified but not run: for externs that only a library can compute.
loop::Program lower_only(GraphCase& c);

// Equal dtypes, shapes and bits.
void check_equal(const Tensor& actual, const Tensor& expected);

}  // namespace kerf::test
