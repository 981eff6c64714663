#pragma once
// What the bindings use of torch: the DLPack exchange table of the tensor type and a few Python callables, each
// looked up once by name. No torch header and no link to libtorch, so that one binary serves many torch versions.
//
// Every function here needs the GIL. Functions that return PyObject* return a new reference and throw
// nb::python_error when Python raised. Shapes and strides are in elements.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/dtype.h"
#include "dlpack.h"
#include "target/extern_call.h"

namespace kerf::bindings {

// Memory and geometry of a strided tensor; `tensor.shape` and `tensor.strides` point into the tensor object and live
// as long as it. False, without a Python error, for what has no such view: sparse and quantised tensors, other objects.
// Conj and neg bits are dropped; `data` is null for fake and zero tensors.
bool view_tensor(PyObject* object, DLTensor& tensor);

bool is_tensor(PyObject* object);

// nullopt for types that Kerf does not compute with.
std::optional<DType> dtype_of(DLDataType type);

PyObject* empty_strided(DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides);

// `offset` counts from the element that `base` begins with, not from its storage.
PyObject* as_strided(PyObject* base, std::span<const int64_t> shape, std::span<const int64_t> strides,
                     int64_t offset);

// Another tensor object over the same memory, without a gradient history.
PyObject* alias_of(nanobind::object tensor);

// The tensor itself, or a copy without lazy conjugation and negation.
PyObject* without_lazy_bits(PyObject* tensor);

// Takes memory back when the last tensor over it ends: on any thread, without the GIL.
using ReleaseMemory = void (*)(void* data);

// A tensor over memory that is not torch's. Without `release` the caller keeps the memory alive as long as the tensor
// lives; with it the memory belongs to the tensor (also if this throws, then to the caller). It cannot grow: torch
// raises an error where its storage would have to be resized.
PyObject* tensor_over(void* data, DType dtype, std::span<const int64_t> shape,
                      std::span<const int64_t> strides, ReleaseMemory release = nullptr);

// The Python object of a torch enum value: torch.float32, torch.strided, torch.device("cpu").
PyObject* torch_constant(const target::TorchConstant& constant);

// kerf.<module>.<name>, looked up on every call: not for hot paths.
nanobind::object kerf_function(const char* module, const char* name);

}  // namespace kerf::bindings
