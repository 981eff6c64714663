#include "runtime/shape_record.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "runtime/block_memory.h"
#include "runtime/lifetimes.h"
#include "runtime/plan_walk.h"

namespace kerf::runtime {

namespace {

bool is_returned(const PlanBuffer& buffer) {
  return buffer.storage == Storage::output || buffer.storage == Storage::adopted;
}

// The most bytes that are alive at one step.
int64_t most_alive(std::span<const BufferLife> buffers, size_t step_count) {
  std::vector<int64_t> change(step_count + 2);
  for (const BufferLife& buffer : buffers) {
    if (buffer.first_step > buffer.last_step) continue;
    change[std::min<size_t>(buffer.first_step, step_count)] += buffer.bytes;
    change[std::min<size_t>(buffer.last_step, step_count) + 1] -= buffer.bytes;
  }
  int64_t alive = 0, most = 0;
  for (int64_t bytes : change) most = std::max(most, alive += bytes);
  return most;
}

}  // namespace

int64_t span_elements(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return 0;
    last += (shape[i] - 1) * strides[i];
  }
  return last + 1;
}

int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

bool same_layout(const Geometry& expected, std::span<const int64_t> shape, std::span<const int64_t> strides) {
  if (!std::ranges::equal(expected.shape, shape)) return false;
  bool same_strides = true;
  for (size_t i = 0; i < shape.size(); ++i)
    if (expected.strides[i] != strides[i] && shape[i] != 1) same_strides = false;
  return same_strides || std::ranges::find(shape, 0) != shape.end();
}

// The values of all expressions for one set of sizes.
class ShapeEvaluator::Values {
 public:
  Values(const ShapeEvaluator& evaluator, std::span<const int64_t> sizes)
      : evaluator_(evaluator), values_(evaluator.program_.output_count()) {
    std::vector<int64_t> registers(evaluator.program_.register_count());
    evaluator.program_.run(sizes, values_, registers);
  }

  int64_t of(sym::Expr expr) const { return values_[evaluator_.slots_.at(expr.node())]; }

  std::vector<int64_t> of(const std::vector<sym::Expr>& list) const {
    std::vector<int64_t> result;
    result.reserve(list.size());
    for (sym::Expr expr : list) result.push_back(of(expr));
    return result;
  }

  template <class View>
  Geometry geometry(const View& view) const {
    return {of(view.shape), of(view.strides)};
  }

 private:
  const ShapeEvaluator& evaluator_;
  std::vector<int64_t> values_;
};

ShapeEvaluator::ShapeEvaluator(const Plan& plan) : plan_(plan) {
  std::vector<sym::Expr> symbols;
  for (const PlanSize& size : plan.sizes) symbols.push_back(size.symbol);
  std::vector<sym::Expr> exprs;
  for_each_expr(plan, [&](sym::Expr expr) {
    if (slots_.emplace(expr.node(), static_cast<uint32_t>(exprs.size())).second) exprs.push_back(expr);
  });
  program_ = sym::EvalProgram(symbols, exprs);
}

std::shared_ptr<const ShapeRecord> ShapeEvaluator::evaluate(std::span<const int64_t> sizes) const {
  check_sizes(sizes);
  Values values(*this, sizes);
  auto record = std::make_shared<ShapeRecord>();
  record->sizes.assign(sizes.begin(), sizes.end());
  for (const PlanInput& input : plan_.inputs) {
    Geometry geometry = values.geometry(input);
    int64_t bytes = element_count(geometry.shape) * byte_size(input.dtype);
    record->inputs.push_back({std::move(geometry), bytes});
  }
  evaluate_steps(values, *record);
  evaluate_outputs(values, *record);
  plan_memory(values, *record);
  return record;
}

void ShapeEvaluator::check_sizes(std::span<const int64_t> sizes) const {
  CHECK(sizes.size() == plan_.sizes.size(), "{} values for {} sizes", sizes.size(), plan_.sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const PlanSize& size = plan_.sizes[i];
    const std::string& name = size.symbol.symbol().name;
    if (!size.range.contains(sizes[i]))
      throw UserError(fmt::format("size {} is {}, but this function was compiled for {} <= {} <= {}", name,
                                  sizes[i], size.range.lo ? std::to_string(*size.range.lo) : "-inf", name,
                                  size.range.hi ? std::to_string(*size.range.hi) : "inf"));
    auto [modulus, remainder] = size.modulus;
    bool divides = modulus == 0 ? sizes[i] == remainder : sym::mod_int(sizes[i] - remainder, modulus) == 0;
    if (!divides)
      throw UserError(fmt::format("size {} is {}, but this function was compiled for {} mod {} = {}", name,
                                  sizes[i], name, modulus, remainder));
  }
}

CallValueList ShapeEvaluator::arguments(const target::ExternArgumentList& list, const Values& values) const {
  CallValueList result;
  result.reserve(list.size());
  for (const target::ExternArgument& argument : list) {
    CallValue value;
    value.keyword = argument.keyword;
    std::visit(
        [&]<class T>(const T& v) {
          if constexpr (std::is_same_v<T, sym::Expr>) {
            value.value = values.of(v);
          } else if constexpr (std::is_same_v<T, target::TensorView>) {
            value.value = CallTensor{.dtype = v.dtype,
                                     .shape = values.of(v.shape),
                                     .strides = values.of(v.strides),
                                     .offset = values.of(v.offset)};
          } else if constexpr (std::is_same_v<T, target::ExternArgumentList>) {
            value.value = arguments(v, values);
          } else {
            value.value = v;
          }
        },
        argument.value);
    result.push_back(std::move(value));
  }
  return result;
}

void ShapeEvaluator::evaluate_steps(const Values& values, ShapeRecord& record) const {
  record.owners.resize(plan_.buffers.size());
  record.steps.reserve(plan_.steps.size());
  for (const auto& step : plan_.steps) {
    if (auto* launch = std::get_if<LaunchStep>(&step)) {
      record.steps.push_back(
          LaunchShape{values.of(launch->grid), values.of(launch->work), values.of(launch->sizes)});
      continue;
    }
    const auto& call = std::get<target::ExternCall>(step);
    ExternShape shape{arguments(call.arguments, values), {}};
    for (const target::ExternResult& result : call.results) {
      shape.results.push_back(values.geometry(result));
      if (result.buffer != target::kNoBuffer && plan_.buffers[result.buffer].storage == Storage::adopted)
        record.owners[result.buffer] = shape.results.back();
    }
    record.steps.push_back(std::move(shape));
  }
}

void ShapeEvaluator::evaluate_outputs(const Values& values, ShapeRecord& record) const {
  for (const target::ProgramOutput& output : plan_.outputs) {
    OutputShape shape;
    if (output.kind == target::ProgramOutput::Kind::integer) shape.integer = values.of(output.integer);
    if (output.kind == target::ProgramOutput::Kind::tensor) {
      shape.geometry = values.geometry(output.view);
      shape.offset = values.of(output.view.offset);
    }
    record.outputs.push_back(std::move(shape));
  }
  for (BufferIndex i = 0; i < plan_.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan_.buffers[i];
    if (buffer.storage != Storage::output) continue;
    const OutputShape& output = record.outputs[static_cast<size_t>(buffer.output_index)];
    int64_t elements = values.of(buffer.elements);
    bool covers =
        output.offset == 0 && span_elements(output.geometry.shape, output.geometry.strides) >= elements;
    record.owners[i] = covers ? output.geometry : Geometry{{elements}, {1}};
  }
  std::vector<bool> taken(plan_.buffers.size());
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    const target::ProgramOutput& output = plan_.outputs[i];
    if (output.kind != target::ProgramOutput::Kind::tensor || output.alias_input >= 0) continue;
    BufferIndex buffer = output.view.buffer;
    OutputShape& shape = record.outputs[i];
    const Geometry& owner = record.owners[buffer];
    shape.takes_owner = is_returned(plan_.buffers[buffer]) && !taken[buffer] && shape.offset == 0 &&
                        same_layout(owner, shape.geometry.shape, shape.geometry.strides);
    if (shape.takes_owner) taken[buffer] = true;
  }
}

void ShapeEvaluator::plan_memory(const Values& values, ShapeRecord& record) const {
  std::vector<BufferLife> lives, single;
  lives.reserve(plan_.buffers.size());
  record.blocks.assign(plan_.buffers.size(), 0);
  for (const PlanBuffer& buffer : plan_.buffers) {
    auto life = [&](Storage storage) -> BufferLife {
      bool counts = buffer.storage == storage && is_used(buffer);
      int64_t bytes = counts ? values.of(buffer.elements) * byte_size(buffer.dtype) : 0;
      return {bytes, buffer.first_step, buffer.last_step};
    };
    lives.push_back(life(Storage::arena));
    if (lives.back().bytes >= kBlockBytes) {
      record.blocks[lives.size() - 1] = lives.back().bytes;
      single.push_back(std::exchange(lives.back(), {}));
    }
    if (is_returned(buffer)) single.push_back(life(buffer.storage));
  }
  record.arena = plan_arena(lives);
  record.peak_bytes = record.arena.bytes + most_alive(single, plan_.steps.size());
}

}  // namespace kerf::runtime
