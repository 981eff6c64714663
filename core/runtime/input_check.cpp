#include "runtime/input_check.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "sym/text.h"

namespace kerf::runtime {

namespace {

std::string expected_text(const std::vector<sym::Expr>& exprs, std::span<const int64_t> values) {
  std::string text = "[";
  for (size_t i = 0; i < exprs.size(); ++i) {
    text += fmt::format("{}{}", i ? ", " : "", values[i]);
    if (!exprs[i].is_constant()) text += fmt::format(" ({})", sym::to_text(exprs[i]));
  }
  return text + "]";
}

[[noreturn]] void fail_rank(size_t index, size_t expected, size_t got) {
  throw UserError(
      fmt::format("input {} has {} dimensions, but this function was compiled for {}", index, got, expected));
}

[[noreturn]] void fail_dtype(size_t index, DType expected, DType got) {
  throw UserError(fmt::format("input {} has dtype {}, but this function was compiled for {}", index,
                              info(got).torch_name, info(expected).torch_name));
}

[[noreturn]] void fail_layout(size_t index, const PlanInput& input, const Geometry& expected,
                              const TensorRef& got) {
  bool same_shape = std::ranges::equal(expected.shape, got.shape);
  const char* what = same_shape ? "strides" : "shape";
  throw UserError(fmt::format("input {} has {} {}, but this function was compiled for {}", index, what,
                              fmt::format("[{}]", fmt::join(same_shape ? got.strides : got.shape, ", ")),
                              same_shape ? expected_text(input.strides, expected.strides)
                                         : expected_text(input.shape, expected.shape)));
}

[[noreturn]] void fail_null(size_t index, const TensorRef& got) {
  throw UserError(fmt::format("input {} of shape [{}] has no memory (a fake, meta or otherwise empty tensor)",
                              index, fmt::join(got.shape, ", ")));
}

}  // namespace

std::vector<target::SizeSource> first_sources(const Plan& plan) {
  std::vector<target::SizeSource> result;
  for (const PlanSize& size : plan.sizes) {
    auto source =
        std::ranges::find_if(plan.size_sources, [&](const auto& s) { return s.symbol == size.symbol; });
    CHECK(source != plan.size_sources.end(), "size {} has no source", size.symbol.symbol().name);
    result.push_back(*source);
  }
  return result;
}

void read_sizes(const Plan& plan, std::span<const target::SizeSource> sources,
                std::span<const CallInput> inputs, std::span<int64_t> sizes) {
  if (inputs.size() != plan.inputs.size())
    throw UserError(fmt::format("called with {} inputs, but this function was compiled for {}", inputs.size(),
                                plan.inputs.size()));
  for (size_t i = 0; i < sources.size(); ++i) {
    size_t index = static_cast<size_t>(sources[i].input);
    const CallInput& input = inputs[index];
    if (sources[i].dim < 0) {
      sizes[i] = input.integer;
      continue;
    }
    size_t rank = plan.inputs[index].shape.size();
    if (input.tensor.shape.size() != rank) fail_rank(index, rank, input.tensor.shape.size());
    sizes[i] = input.tensor.shape[static_cast<size_t>(sources[i].dim)];
  }
}

void check_inputs(const Plan& plan, const ShapeRecord& record, std::span<const CallInput> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const PlanInput& expected = plan.inputs[i];
    if (!expected.is_used || expected.is_integer || expected.is_opaque) continue;
    const InputShape& shape = record.inputs[i];
    const TensorRef& got = inputs[i].tensor;
    if (got.dtype != expected.dtype) fail_dtype(i, expected.dtype, got.dtype);
    if (got.shape.size() != expected.shape.size()) fail_rank(i, expected.shape.size(), got.shape.size());
    if (!same_layout(shape.geometry, got.shape, got.strides)) fail_layout(i, expected, shape.geometry, got);
    if (shape.bytes > 0 && !got.data) fail_null(i, got);
  }
}

}  // namespace kerf::runtime
