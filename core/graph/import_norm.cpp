// Batch and group norms. Statistics saved for the backward call have the dtype that eager's kernel gives them: f32 beside f32
// parameters of a half input, whatever was traced.
#include "graph/import_call.h"

namespace kerf::graph {

namespace {

using Operands = std::vector<ValueId>;
using Dims = std::vector<int64_t>;

// Appends the tensor if there is one; says whether.
int64_t append_if_present(const ImportCall& call, size_t argument, Operands& operands) {
  if (!call.is_tensor(argument)) return 0;
  operands.push_back(call.tensor(argument));
  return 1;
}

bool takes_dtypes(const ImportCall& call, const Operands& operands) {
  DType dtype = call.builder.type(operands[0]).dtype;
  bool half = compute_dtype(dtype) != dtype;
  for (ValueId operand : operands) {
    DType other = call.builder.type(operand).dtype;
    if (other != dtype && !(half && other == DType::f32)) return false;
  }
  return is_floating(dtype);
}

// Of the statistics saved beside these operands.
DType statistics_dtype(const ImportCall& call, const Operands& operands) {
  for (ValueId operand : operands)
    if (call.builder.type(operand).dtype == DType::f32) return DType::f32;
  return call.builder.type(operands[0]).dtype;
}

// In training, with or without running statistics at `running` and `running + 1`; results beyond the third are
// those of the running statistics.
Imported training(const ImportCall& call, std::optional<size_t> running, double momentum, double eps) {
  Term x = call.tensor(0);
  Operands operands = {x};
  Dims present = {append_if_present(call, 1, operands), append_if_present(call, 2, operands), 0};
  if (running) {
    present[2] = append_if_present(call, *running, operands);
    if (append_if_present(call, *running + 1, operands) != present[2])
      return decline("one running statistic without the other");
  }
  if (!takes_dtypes(call, operands)) return decline("parameters of another dtype than the input");
  std::vector<TensorType> types = call.call.results;
  types[1].dtype = types[2].dtype = statistics_dtype(call, operands);
  types.resize(5, {.dtype = x.dtype(), .shape = {}, .strides = {}});
  std::vector<ValueId> results = call.builder.node(
      Op::batch_norm, operands, {{Attr::momentum, momentum}, {Attr::eps, eps}, {Attr::output_mask, present}},
      std::move(types));
  results.resize(call.call.results.size());
  return results;
}

// By the statistics at 3 and 4. What would be saved is empty.
Imported inference(const ImportCall& call, double eps) {
  if (!call.is_tensor(3) || !call.is_tensor(4)) return decline("no statistics");
  Operands operands = {call.tensor(0), call.tensor(3), call.tensor(4)};
  Dims present = {append_if_present(call, 1, operands), append_if_present(call, 2, operands)};
  if (!takes_dtypes(call, operands)) return decline("parameters of another dtype than the input");
  std::vector<ValueId> results = call.builder.node(Op::batch_norm_inference, operands,
                                                   {{Attr::eps, eps}, {Attr::output_mask, present}}, {});
  for (size_t i = 1; i < call.call.results.size(); ++i) results.push_back(call.zeros(i));
  return results;
}

// The backward node over grad, input, statistics [, weight]; argument `mask` says which of its results are wanted.
Imported gradients(const ImportCall& call, const Operands& operands, size_t mask,
                   std::pair<Attr, AttrValue> attribute) {
  Dims wanted = call.mask(mask);
  std::vector<TensorType> types = call.call.results;
  for (size_t i = 0; i < types.size(); ++i)
    if (!wanted[i]) types[i] = {.dtype = call.tensor(1).dtype(), .shape = {}, .strides = {}};
  return call.builder.node(call.row.op, operands, {std::move(attribute), {Attr::output_mask, wanted}},
                           std::move(types));
}

}  // namespace

// input, weight, bias, running_mean, running_var, training, momentum, eps. `flag`: number of results for the
// new running statistics.
Imported import_batch_norm(const ImportCall& call) {
  if (call.boolean(5)) {
    if (call.is_tensor(3) && call.row.flag == 0) return decline("it changes its running statistics");
    return training(call, 3, call.number(6), call.number(7));
  }
  if (call.row.flag != 0) return decline("running statistics that do not move");
  return inference(call, call.number(7));
}

// input, weight, bias, training, momentum, eps
Imported import_batch_norm_no_stats(const ImportCall& call) {
  if (!call.boolean(3)) return decline("no statistics");
  return training(call, std::nullopt, call.number(4), call.number(5));
}

// input, weight, bias, running_mean, running_var, momentum, eps
Imported import_batch_norm_inference(const ImportCall& call) { return inference(call, call.number(6)); }

// grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask. Outside training
// the running statistics are what the input was normalized by.
Imported import_batch_norm_backward(const ImportCall& call) {
  bool train = call.boolean(7);
  size_t statistics = train ? 5 : 3;
  if (!call.is_tensor(statistics) || !call.is_tensor(statistics + 1)) return decline("no statistics");
  Term grad = call.tensor(0), x = call.tensor(1), mean = call.tensor(statistics);
  Term spread = call.tensor(statistics + 1);
  if (!train) spread = rsqrt(spread.computing() + call.number(8));
  Operands operands = {grad, x, mean, spread};
  append_if_present(call, 2, operands);
  return gradients(call, operands, 9, {Attr::train, train});
}

// input, weight, bias, N, C, HxW, groups, eps
Imported import_group_norm(const ImportCall& call) {
  Operands operands = {call.tensor(0)};
  Dims present = {append_if_present(call, 1, operands), append_if_present(call, 2, operands)};
  if (!takes_dtypes(call, operands)) return decline("parameters of another dtype than the input");
  std::vector<TensorType> types = call.call.results;
  types[1].dtype = types[2].dtype = statistics_dtype(call, operands);
  return call.builder.node(
      Op::group_norm, operands,
      {{Attr::groups, call.integer(6)}, {Attr::eps, call.number(7)}, {Attr::output_mask, present}},
      std::move(types));
}

// grad, input, mean, rstd, weight, N, C, HxW, groups, output_mask
Imported import_group_norm_backward(const ImportCall& call) {
  Operands operands = {call.tensor(0), call.tensor(1), call.tensor(2), call.tensor(3)};
  append_if_present(call, 4, operands);
  return gradients(call, operands, 9, {Attr::groups, call.integer(8)});
}

namespace {

std::vector<int64_t> dims_but(size_t kept, size_t rank) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < rank; ++i)
    if (i != kept) dims.push_back(static_cast<int64_t>(i));
  return dims;
}

}  // namespace

// v, g, dim: v scaled to the norm g along all dimensions but `dim`, and the norm it had.
Imported import_weight_norm(const ImportCall& call) {
  Term v = computing(call, 0), g = computing(call, 1);
  std::vector<int64_t> dims = dims_but(static_cast<size_t>(call.dim(2, v.type().rank())), v.type().rank());
  if (dims.empty()) return decline("of a vector");
  Term norm = sqrt(sum(v * v, dims, true));
  Term scaled = v * (g / norm);
  return std::vector<ValueId>{scaled.in(call.result(0).dtype), norm.in(call.result(1).dtype)};
}

// grad, v, g, norm, dim: the gradients of v and g.
Imported import_weight_norm_backward(const ImportCall& call) {
  Term grad = computing(call, 0), v = computing(call, 1), g = computing(call, 2);
  Term norm = call.tensor(3).in(v.dtype());
  std::vector<int64_t> dims = dims_but(static_cast<size_t>(call.dim(4, v.type().rank())), v.type().rank());
  if (dims.empty()) return decline("of a vector");
  Term along = sum(grad * v, dims, true);
  Term of_v = g / norm * (grad - v * (along / (norm * norm)));
  return std::vector<ValueId>{of_v.in(call.result(0).dtype), (along / norm).in(call.result(1).dtype)};
}

}  // namespace kerf::graph
