#pragma once
// Plans made by hand: one-dimensional unless a test says more, kernels are plain functions.
#include <string>
#include <utility>
#include <vector>

#include "runtime/executor.h"
#include "runtime/lifetimes.h"
#include "runtime/plan.h"
#include "sym/text.h"

namespace kerf::runtime::testing {

class PlanBuilder {
 public:
  PlanBuilder() { plan_.context = std::make_shared<sym::Context>(); }

  Plan& plan() { return plan_; }

  sym::Expr expr(std::string_view text) {
    return sym::parse_expr(text, *plan_.context, sym::SymbolKind::size);
  }
  std::vector<sym::Expr> exprs(const std::vector<std::string>& texts) {
    std::vector<sym::Expr> result;
    for (const std::string& text : texts) result.push_back(expr(text));
    return result;
  }
  std::vector<sym::Expr> row_major(const std::vector<std::string>& shape) {
    std::vector<sym::Expr> strides(shape.size());
    sym::Expr step = expr("1");
    for (size_t i = shape.size(); i-- > 0; step = step * expr(shape[i])) strides[i] = step;
    return strides;
  }

  void size(const std::string& name, int input, int dim, sym::Range range = {}, sym::Modulus modulus = {}) {
    plan_.sizes.push_back({expr(name), range, modulus});
    plan_.size_sources.push_back({expr(name), input, dim});
  }

  BufferIndex input(const std::vector<std::string>& shape, DType dtype = DType::f32) {
    plan_.inputs.push_back({.dtype = dtype, .shape = exprs(shape), .strides = row_major(shape)});
    int index = static_cast<int>(plan_.inputs.size()) - 1;
    return buffer(Storage::input, shape, dtype, index, -1);
  }
  void integer_input() { plan_.inputs.push_back({.dtype = DType::i64, .is_integer = true}); }

  BufferIndex temp(const std::vector<std::string>& shape, DType dtype = DType::f32) {
    return buffer(Storage::arena, shape, dtype, -1, -1);
  }
  BufferIndex adopted(const std::vector<std::string>& shape, DType dtype = DType::f32) {
    return buffer(Storage::adopted, shape, dtype, -1, -1);
  }
  BufferIndex output(const std::vector<std::string>& shape, DType dtype = DType::f32) {
    BufferIndex index = buffer(Storage::output, shape, dtype, -1, static_cast<int>(plan_.outputs.size()));
    output_of(index, shape);
    return index;
  }
  void output_of(BufferIndex buffer, const std::vector<std::string>& shape, const std::string& offset = "0",
                 int alias_input = -1) {
    plan_.outputs.push_back({.kind = target::ProgramOutput::Kind::tensor,
                             .view = view(buffer, shape, offset),
                             .integer = {},
                             .alias_input = alias_input});
  }
  void integer_output(const std::string& text) {
    plan_.outputs.push_back(
        {.kind = target::ProgramOutput::Kind::integer, .view = {}, .integer = expr(text)});
  }

  target::TensorView view(BufferIndex buffer, const std::vector<std::string>& shape,
                          const std::string& offset = "0") {
    return {buffer, plan_.buffers[buffer].dtype, exprs(shape), row_major(shape), expr(offset)};
  }

  LaunchStep& launch(target::CpuEntry entry, std::vector<BufferIndex> buffers,
                     const std::vector<std::string>& sizes, const std::string& grid,
                     const std::string& work = "0", int64_t scratch_bytes = 0) {
    std::string name = "k" + std::to_string(plan_.artifacts.size());
    plan_.artifacts.push_back(
        {.name = name, .grid = expr(grid), .scratch_bytes = scratch_bytes, .entry = entry});
    LaunchStep step;
    step.artifact = static_cast<uint32_t>(plan_.artifacts.size()) - 1;
    step.buffers = std::move(buffers);
    step.sizes = exprs(sizes);
    step.grid = expr(grid);
    step.work = expr(work);
    step.name = name;
    step.sources = {"model.py:3"};
    plan_.steps.emplace_back(std::move(step));
    return std::get<LaunchStep>(plan_.steps.back());
  }

  target::ExternCall& call(const std::string& op, target::ExternArgumentList arguments, BufferIndex result,
                           const std::vector<std::string>& shape, DType dtype = DType::f32) {
    target::ExternCall call;
    call.op = op;
    call.arguments = std::move(arguments);
    call.results.push_back({result, dtype, exprs(shape), row_major(shape)});
    call.source = "model.py:7";
    plan_.steps.emplace_back(std::move(call));
    return std::get<target::ExternCall>(plan_.steps.back());
  }

  std::shared_ptr<const Plan> finish() {
    compute_lifetimes(plan_);
    return std::make_shared<const Plan>(plan_);
  }

 private:
  BufferIndex buffer(Storage storage, const std::vector<std::string>& shape, DType dtype, int input,
                     int output) {
    std::vector<sym::Expr> factors = exprs(shape);
    plan_.buffers.push_back({.name = "b" + std::to_string(plan_.buffers.size()),
                             .dtype = dtype,
                             .elements = sym::product(*plan_.context, factors),
                             .storage = storage,
                             .input_index = input,
                             .output_index = output});
    return static_cast<BufferIndex>(plan_.buffers.size()) - 1;
  }

  Plan plan_;
};

}  // namespace kerf::runtime::testing
