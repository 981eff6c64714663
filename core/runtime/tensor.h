#pragma once
// How the executor sees tensors and the library without knowing Python or torch: views of caller memory, an
// allocator for outputs, and extern calls. Bindings implement `Host`; tests implement a small one in C++.
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "target/extern_call.h"

namespace kerf::runtime {

// An opaque reference to a host tensor object (a PyObject* in the bindings). Owned by the Host; released by
// it.
using HostTensor = void*;

struct TensorRef {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::span<const int64_t> shape;
  std::span<const int64_t> strides;  // in elements
  HostTensor host = nullptr;         // valid where the tensor is (or already has) a host object
};

// An extern argument with all expressions evaluated. Tensors are given as views of memory; `host` is set when
// the buffer is a caller's tensor or an adopted result, with the same geometry.
struct CallTensor {
  void* data = nullptr;
  HostTensor base = nullptr;  // host tensor that owns the memory, if any: the view is as_strided on it
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t offset = 0;  // elements from base's data pointer (already added to `data`)
};

struct CallValue;
using CallValueList = std::vector<CallValue>;
struct CallValue {
  std::variant<std::monostate, bool, int64_t, double, std::string, target::TorchConstant, CallTensor,
               CallValueList>
      value;
  std::string keyword;
};

// Where the memory of a new tensor comes from.
struct Place {
  bool is_kept = true;     // if it is large: from what is kept between calls (block_memory.h)
  void* wanted = nullptr;  // its place there, if that is possible; null: any
};

class Host {
 public:
  virtual ~Host() = default;
  // A new tensor of the host with this geometry; memory uninitialised. The reference belongs to the caller.
  virtual HostTensor allocate(DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides,
                              Place place, void** data) = 0;
  virtual void release(HostTensor tensor) = 0;
  // No later step reads input `index`, one with CallInput::may_drop, and no output needs it.
  virtual void drop_input(size_t index) = 0;
  // as_strided on an existing tensor object; a new reference.
  virtual HostTensor view(HostTensor base, std::span<const int64_t> shape, std::span<const int64_t> strides,
                          int64_t offset) = 0;
  // Calls `op`; one new reference per result (nullptr for None). `data` receives the data pointers. Geometry
  // is checked by the executor through `describe`.
  virtual void call(const target::ExternCall& call, const CallValueList& arguments,
                    std::span<HostTensor> results) = 0;
  // Geometry of a host tensor; spans stay valid while the tensor lives. dtype text is torch's ("float32").
  virtual TensorRef describe(HostTensor tensor) = 0;
};

}  // namespace kerf::runtime
