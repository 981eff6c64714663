#pragma once
// runtime::Host over Python objects: outputs are torch tensors, extern steps are calls of torch operators or of Python
// functions. The executor runs without the GIL; every method here takes it.
//
// Planned memory never leaves a call: a result that shares memory with an argument is copied before the executor sees
// it, as the argument's memory will be used again (or, if it is the caller's, may be written to by a later step).
#include <nanobind/nanobind.h>

#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/plan.h"
#include "runtime/tensor.h"

namespace kerf::bindings {

// The Python callable of every extern step of one Plan, resolved once.
class ExternTable {
 public:
  struct Entry {
    nanobind::object callable;
    nanobind::object keywords;  // tuple of names, or null
    size_t keyword_count = 0;
  };

  // `functions` are the callables of the steps named "python:<position>".
  ExternTable(const runtime::Plan& plan, const std::vector<nanobind::object>& functions);
  const Entry& entry(const target::ExternCall& call) const;

 private:
  std::unordered_map<const target::ExternCall*, Entry> entries_;
};

// One per call of a compiled graph.
class PythonHost final : public runtime::Host {
 public:
  // `inputs`: references that the call holds, by input.
  PythonHost(const ExternTable& externs, std::span<nanobind::object> inputs)
      : externs_(externs), inputs_(inputs) {}

  runtime::HostTensor allocate(DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides,
                               runtime::Place place, void** data) override;
  void release(runtime::HostTensor tensor) override;
  void drop_input(size_t index) override;
  runtime::HostTensor view(runtime::HostTensor base, std::span<const int64_t> shape,
                           std::span<const int64_t> strides, int64_t offset) override;
  void call(const target::ExternCall& call, const runtime::CallValueList& arguments,
            std::span<runtime::HostTensor> results) override;
  // A tensor that DLPack cannot describe (sparse, quantised) has null data and no shape.
  runtime::TensorRef describe(runtime::HostTensor tensor) override;

 private:
  const ExternTable& externs_;
  std::span<nanobind::object> inputs_;
};

}  // namespace kerf::bindings
