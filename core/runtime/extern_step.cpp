#include "runtime/extern_step.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "runtime/plan_walk.h"

namespace kerf::runtime {

namespace {

void collect_tensors(CallValueList& arguments, std::vector<CallTensor*>& out) {
  for (CallValue& argument : arguments) {
    if (auto* tensor = std::get_if<CallTensor>(&argument.value)) out.push_back(tensor);
    if (auto* list = std::get_if<CallValueList>(&argument.value)) collect_tensors(*list, out);
  }
}

// Memory of a tensor's first element, and how to step from there.
struct Elements {
  char* data;
  DType dtype;
  std::span<const int64_t> strides;

  Elements row(int64_t i) const {
    return {data + i * strides[0] * byte_size(dtype), dtype, strides.subspan(1)};
  }
};

// Element by element: for the rare host result that must land in memory of another layout or dtype.
void copy_strided(const Elements& to, const Elements& from, std::span<const int64_t> shape) {
  if (!shape.empty()) {
    for (int64_t i = 0; i < shape[0]; ++i) copy_strided(to.row(i), from.row(i), shape.subspan(1));
  } else if (to.dtype == from.dtype) {
    std::memcpy(to.data, from.data, static_cast<size_t>(byte_size(to.dtype)));
  } else {
    store_scalar(to.data, 0, convert(load_scalar(from.data, 0, from.dtype), to.dtype));
  }
}

Elements elements_of(const TensorRef& tensor) {
  return {static_cast<char*>(tensor.data), tensor.dtype, tensor.strides};
}

std::string tensor_text(DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides) {
  return fmt::format("{}[{}] with strides [{}]", to_text(dtype), fmt::join(shape, ", "),
                     fmt::join(strides, ", "));
}

// Releases what a failing call leaves behind.
struct ReleaseOnExit {
  Host& host;
  std::vector<HostTensor>& tensors;
  ~ReleaseOnExit() {
    for (HostTensor& tensor : tensors)
      if (tensor) host.release(std::exchange(tensor, nullptr));
  }
};

}  // namespace

ExternFrame::ExternFrame(const Plan& plan, const target::ExternCall& call, const ExternShape& shape)
    : plan_(plan), call_(call), shape_(shape), arguments_(shape.arguments), results_(call.results.size()) {
  std::vector<CallTensor*> tensors;
  collect_tensors(arguments_, tensors);
  for_each_view(call.arguments, [&](const target::TensorView& view) {
    operands_.push_back({tensors[operands_.size()], view.buffer});
  });
  CHECK(operands_.size() == tensors.size(), "{}: {} views but {} tensors", call.op, operands_.size(),
        tensors.size());
  if (call.results.size() != 1 || call.results[0].buffer == target::kNoBuffer) return;
  if (plan.buffers[call.results[0].buffer].storage == Storage::adopted) return;
  planned_.dtype = call.results[0].dtype;
  planned_.shape = shape.results[0].shape;
  planned_.strides = shape.results[0].strides;
  if (cpu::has_direct_entry(call)) direct_.emplace(call.op, arguments_, planned_);
}

void ExternFrame::run(Host& host, CallMemory& memory) {
  set_addresses(memory);
  if (direct_) {
    planned_.data = memory.pointers[call_.results[0].buffer];
    direct_->run();
  } else {
    call_host(host, memory);
  }
}

void ExternFrame::set_addresses(const CallMemory& memory) {
  for (const Operand& operand : operands_) {
    char* data = static_cast<char*>(memory.pointers[operand.buffer]);
    operand.tensor->data = data ? data + operand.tensor->offset * byte_size(operand.tensor->dtype) : nullptr;
    operand.tensor->base = memory.owners[operand.buffer];
  }
}

void ExternFrame::call_host(Host& host, CallMemory& memory) {
  ReleaseOnExit release{host, results_};
  host.call(call_, arguments_, results_);
  for (size_t i = 0; i < results_.size(); ++i) take_result(host, i, memory);
}

void ExternFrame::check_result(size_t index, const TensorRef& got) const {
  const target::ExternResult& expected = call_.results[index];
  const Geometry& geometry = shape_.results[index];
  bool fits = (expected.is_opaque || info(got.dtype).kind == info(expected.dtype).kind) &&
              std::ranges::equal(got.shape, geometry.shape) &&
              (!expected.is_opaque || same_layout(geometry, got.shape, got.strides));
  if (!fits)
    throw RuntimeError(fmt::format("{} returned {} as result {}, but tracing promised {}{}", call_.op,
                                   tensor_text(got.dtype, got.shape, got.strides), index,
                                   tensor_text(expected.dtype, geometry.shape, geometry.strides),
                                   call_.source.empty() ? "" : fmt::format(" ({})", call_.source)));
  if (!got.data && !expected.is_opaque && element_count(geometry.shape) > 0)
    throw RuntimeError(fmt::format("{} returned a tensor without memory as result {}", call_.op, index));
}

void ExternFrame::take_result(Host& host, size_t index, CallMemory& memory) {
  BufferIndex buffer = call_.results[index].buffer;
  if (buffer == target::kNoBuffer) return;
  if (!results_[index]) throw RuntimeError(fmt::format("{} returned None as result {}", call_.op, index));
  TensorRef got = host.describe(results_[index]);
  check_result(index, got);
  const Geometry& geometry = shape_.results[index];
  if (plan_.buffers[buffer].storage == Storage::adopted) {
    bool converted = !call_.results[index].is_opaque && got.dtype != call_.results[index].dtype;
    if (converted || !same_layout(geometry, got.shape, got.strides)) got = as_planned(host, index, got);
    memory.pointers[buffer] = got.data;
    memory.owners[buffer] = std::exchange(results_[index], nullptr);
    return;
  }
  if (element_count(geometry.shape) > 0)
    copy_strided({static_cast<char*>(memory.pointers[buffer]), call_.results[index].dtype, geometry.strides},
                 elements_of(got), geometry.shape);
}

// The result in memory with the Plan's dtype and strides. Rare: the library chose others than were foreseen.
TensorRef ExternFrame::as_planned(Host& host, size_t index, const TensorRef& got) {
  const Geometry& geometry = shape_.results[index];
  DType dtype = call_.results[index].dtype;
  void* data = nullptr;
  HostTensor copy = host.allocate(dtype, geometry.shape, geometry.strides, Place{}, &data);
  if (element_count(geometry.shape) > 0)
    copy_strided({static_cast<char*>(data), dtype, geometry.strides}, elements_of(got), geometry.shape);
  host.release(std::exchange(results_[index], copy));
  return host.describe(copy);
}

}  // namespace kerf::runtime
