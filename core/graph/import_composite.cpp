// Composites stay whole nodes; expand_composites says what they compute.
#include <numeric>

#include "graph/import_call.h"

namespace kerf::graph {

namespace {

std::vector<int64_t> trailing_dims(size_t rank, size_t count) {
  std::vector<int64_t> dims(count);
  std::iota(dims.begin(), dims.end(), static_cast<int64_t>(rank - count));
  return dims;
}

// Optional tensors: appends those that are there and says which.
std::vector<int64_t> append_present(const ImportCall& call, std::initializer_list<size_t> arguments,
                                    std::vector<ValueId>& operands) {
  std::vector<int64_t> present;
  for (size_t i : arguments) {
    present.push_back(call.is_tensor(i));
    if (call.is_tensor(i)) operands.push_back(call.tensor(i));
  }
  return present;
}

}  // namespace

// self, dim, half_to_float; _safe_softmax: self, dim, dtype, to which the operand is converted first. A 0-d tensor is a row
// of one element.
Imported import_softmax(const ImportCall& call) {
  Term x = call.tensor(0);
  if (call.row.op == Op::safe_softmax) {
    // Eager looks for lost rows before it converts: that shows where numbers become infinite.
    if (call.result().dtype != x.dtype() && compute_dtype(x.dtype()) != call.result().dtype &&
        call.result().dtype != DType::f64)
      return decline("of {} in {}", to_text(x.dtype()), to_text(call.result().dtype));
    x = x.in(call.result().dtype);
  }
  if (!is_floating(x.dtype())) return decline("of {}", to_text(x.dtype()));
  Term row = x.type().rank() ? x : call.term(call.builder.unsqueeze(x, 0));
  std::vector<std::pair<Attr, AttrValue>> attributes = {{Attr::dim, call.dim(1, x.type().rank())}};
  if (call.row.op != Op::safe_softmax) attributes.emplace_back(Attr::half_to_float, call.boolean(2));
  ValueId out = call.builder.node(call.row.op, {row}, attributes, {})[0];
  return rounded(call, call.term(call.builder.reshape(out, x.type().shape)));
}

// grad, output, dim, input_dtype
Imported import_softmax_backward(const ImportCall& call) {
  Term grad = call.tensor(0), output = call.tensor(1);
  Shape shape = output.type().shape;
  int64_t dim = call.dim(2, shape.size());
  if (shape.empty()) {
    grad = call.term(call.builder.unsqueeze(grad, 0));
    output = call.term(call.builder.unsqueeze(output, 0));
  }
  ValueId out = call.builder.node(call.row.op, {grad, output},
                                  {{Attr::dim, dim}, {Attr::dtype, call.result().dtype}}, {})[0];
  return one(call.builder.reshape(out, shape));
}

// input, normalized_shape, weight, bias, eps. mean and rstd have the dtype that eager's kernel gives them: f32
// for a half input with f32 weights, whatever was traced.
Imported import_layer_norm(const ImportCall& call) {
  Term x = call.tensor(0);
  std::vector<ValueId> operands = {x};
  std::vector<int64_t> mask = append_present(call, {2, 3}, operands);
  std::vector<TensorType> results = call.call.results;
  for (size_t i = 1; i < operands.size(); ++i)
    if (call.builder.type(operands[i]).dtype == DType::f32 && compute_dtype(x.dtype()) == DType::f32)
      results[1].dtype = results[2].dtype = DType::f32;
  if (results[0].dtype != x.dtype()) return decline("a result of another dtype than the input");
  return call.builder.node(Op::layer_norm, operands,
                           {{Attr::dims, trailing_dims(x.type().rank(), call.sizes(1).size())},
                            {Attr::eps, call.number(4)},
                            {Attr::output_mask, mask}},
                           std::move(results));
}

// grad, input, normalized_shape, mean, rstd, weight, bias, output_mask
Imported import_layer_norm_backward(const ImportCall& call) {
  Term grad = call.tensor(0), x = call.tensor(1), mean = call.tensor(3), rstd = call.tensor(4);
  std::vector<ValueId> operands = {grad, x, mean, rstd};
  append_present(call, {5}, operands);
  std::vector<int64_t> mask = call.mask(7);
  std::vector<TensorType> results = call.call.results;
  for (size_t i = 0; i < results.size(); ++i)
    if (!mask[i]) results[i] = {.dtype = x.dtype(), .shape = {}, .strides = {}};
  auto dims = trailing_dims(x.type().rank(), call.sizes(2).size());
  // Without a dimension to normalize over, torch has checked that there is one.
  return call.builder.node(Op::layer_norm_backward, operands, {{Attr::dims, dims}, {Attr::output_mask, mask}},
                           std::move(results));
}

// self, approximate / grad, self, approximate
Imported import_gelu(const ImportCall& call) {
  size_t tensors = static_cast<size_t>(info(call.row.op).operands);
  std::vector<ValueId> operands;
  for (size_t i = 0; i < tensors; ++i) operands.push_back(call.tensor(i));
  std::string approximate = call.is_none(tensors) ? "none" : call.string(tensors);
  return one(call.builder.node(call.row.op, operands, {{Attr::approximate, approximate}}, {})[0]);
}

// grad, indices, num_weights, padding_idx, scale_grad_by_freq
Imported import_embedding_backward(const ImportCall& call) {
  if (call.boolean(4, false)) return decline("gradients scaled by frequency");
  Term grad = call.tensor(0), indices = call.tensor(1).in(DType::i64);
  return one(call.builder.node(Op::embedding_backward, {grad, indices},
                               {{Attr::shape, call.result().shape},
                                {Attr::padding_idx, call.integer(3)},
                                {Attr::scale_by_frequency, false}},
                               {call.result()})[0]);
}

// self, target, weight, reduction, ignore_index: loss, total weight
Imported import_nll_loss(const ImportCall& call) {
  Term x = call.tensor(0), target = call.tensor(1);
  if (target.dtype() != DType::i64) return decline("targets of {}", to_text(target.dtype()));
  std::vector<ValueId> operands = {x, target};
  append_present(call, {2}, operands);
  return call.builder.node(Op::nll_loss, operands,
                           {{Attr::reduction, call.integer(3)}, {Attr::ignore_index, call.integer(4)}},
                           call.call.results);
}

// grad, self, target, weight, reduction, ignore_index, total_weight
Imported import_nll_loss_backward(const ImportCall& call) {
  Term grad = call.tensor(0), x = call.tensor(1), target = call.tensor(2), total = call.tensor(6);
  if (target.dtype() != DType::i64) return decline("targets of {}", to_text(target.dtype()));
  std::vector<ValueId> operands = {grad, x, target, total};
  append_present(call, {3}, operands);
  return one(call.builder.node(Op::nll_loss_backward, operands,
                               {{Attr::reduction, call.integer(4)}, {Attr::ignore_index, call.integer(5)}},
                               {})[0]);
}

// grad, mask, scale
Imported import_native_dropout_backward(const ImportCall& call) {
  Term grad = call.tensor(0).computing();
  if (!is_floating(grad.dtype())) return decline("of {}", to_text(grad.dtype()));
  return rounded(call, grad * call.tensor(1).in(grad.dtype()) * call.number(2));
}

Imported import_draw_seed(const ImportCall& call) { return call.builder.node(Op::draw_seed, {}, {}, {}); }

// seed, number, size, p: the mask of dropout `number` of a step. Every dropout has counters of its own, 2^40 of them.
Imported import_dropout_mask(const ImportCall& call) {
  sym::Expr offset = call.constant(call.integer(1)) * call.constant(int64_t{1} << 40);
  ValueId uniform = call.builder.node(Op::random_uniform, {call.tensor(0)},
                                      {{Attr::offset, offset}, {Attr::shape, call.result().shape}}, {})[0];
  return one(less(call.term(uniform), 1 - call.number(3)));
}

// input, p, train
Imported import_native_dropout(const ImportCall& call) {
  Term x = call.tensor(0);
  bool train = call.boolean(2, true);
  return call.builder.node(Op::native_dropout, {x}, {{Attr::p, call.number(1)}, {Attr::train, train}},
                           call.call.results);
}

}  // namespace kerf::graph
