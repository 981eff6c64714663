#pragma once
// A Host of plain memory for tests of the executor: tensors are counted, so that a test sees leaks, and library
// calls are lambdas by name.
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/tensor.h"

namespace kerf::runtime::testing {

struct FakeTensor {
  std::shared_ptr<std::vector<char>> storage;
  char* data = nullptr;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;

  TensorRef ref() { return {data, dtype, shape, strides, this}; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data);
  }
};

class FakeHost : public Host {
 public:
  using Function = std::function<void(const CallValueList&, std::span<HostTensor>)>;

  ~FakeHost() override {
    for (FakeTensor* tensor : live_) delete tensor;
  }

  FakeTensor* make(DType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    auto* tensor = new FakeTensor;
    tensor->dtype = dtype;
    int64_t last = 0;
    bool empty = false;
    for (size_t i = 0; i < shape.size(); ++i) {
      last += (shape[i] - 1) * strides[i];
      empty |= shape[i] == 0;
    }
    tensor->storage =
        std::make_shared<std::vector<char>>(empty ? 0 : (last + 1) * byte_size(dtype), char(0x7f));
    tensor->data = tensor->storage->data();
    tensor->shape = std::move(shape);
    tensor->strides = std::move(strides);
    live_.insert(tensor);
    return tensor;
  }

  FakeTensor* make(DType dtype, std::vector<int64_t> shape) {
    std::vector<int64_t> strides(shape.size());
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0; step *= std::max<int64_t>(shape[i], 1)) strides[i] = step;
    return make(dtype, std::move(shape), std::move(strides));
  }

  FakeTensor* floats(std::vector<float> values) {
    FakeTensor* tensor = make(DType::f32, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor->as<float>());
    return tensor;
  }

  void define(const std::string& op, Function function) { functions_[op] = std::move(function); }
  size_t live() const { return live_.size(); }
  int allocations() const { return allocations_; }
  const std::vector<size_t>& dropped() const { return dropped_; }
  bool is_live(HostTensor tensor) const { return live_.contains(static_cast<FakeTensor*>(tensor)); }

  HostTensor allocate(DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides, Place,
                      void** data) override {
    FakeTensor* tensor = make(dtype, {shape.begin(), shape.end()}, {strides.begin(), strides.end()});
    *data = tensor->data;
    ++allocations_;
    return tensor;
  }

  void release(HostTensor tensor) override {
    auto* fake = static_cast<FakeTensor*>(tensor);
    if (live_.erase(fake) == 0) throw InternalError("a tensor is released twice");
    delete fake;
  }

  void drop_input(size_t index) override { dropped_.push_back(index); }

  HostTensor view(HostTensor base, std::span<const int64_t> shape, std::span<const int64_t> strides,
                  int64_t offset) override {
    auto* from = static_cast<FakeTensor*>(base);
    auto* tensor = new FakeTensor(*from);
    tensor->data = from->data + offset * byte_size(from->dtype);
    tensor->shape.assign(shape.begin(), shape.end());
    tensor->strides.assign(strides.begin(), strides.end());
    live_.insert(tensor);
    return tensor;
  }

  void call(const target::ExternCall& call, const CallValueList& arguments,
            std::span<HostTensor> results) override {
    functions_.at(call.op)(arguments, results);
  }

  TensorRef describe(HostTensor tensor) override { return static_cast<FakeTensor*>(tensor)->ref(); }

 private:
  std::set<FakeTensor*> live_;
  std::map<std::string, Function> functions_;
  std::vector<size_t> dropped_;
  int allocations_ = 0;
};

}  // namespace kerf::runtime::testing
