#include "host.h"

#include <algorithm>

#include "base/check.h"
#include "runtime/block_memory.h"
#include "runtime/shape_record.h"
#include "torch_abi.h"

namespace nb = nanobind;

namespace kerf::bindings {
namespace {

constexpr std::string_view kPythonPrefix = "python:";

// The bytes that a strided tensor may touch: [begin, end).
struct MemoryRange {
  const char* begin = nullptr;
  const char* end = nullptr;
  bool overlaps(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
};

MemoryRange range_of(const void* data, int64_t item_bytes, std::span<const int64_t> shape,
                     std::span<const int64_t> strides) {
  const char* begin = static_cast<const char*>(data);
  int64_t elements = runtime::span_elements(shape, strides);
  return elements == 0 ? MemoryRange{} : MemoryRange{begin, begin + elements * item_bytes};
}

std::span<const int64_t> shape_of(const DLTensor& tensor) {
  return {tensor.shape, static_cast<size_t>(tensor.ndim)};
}

std::span<const int64_t> strides_of(const DLTensor& tensor) {
  return {tensor.strides, static_cast<size_t>(tensor.ndim)};
}

MemoryRange range_of(const DLTensor& tensor) {
  return range_of(tensor.data, tensor.dtype.bits * tensor.dtype.lanes / 8, shape_of(tensor),
                  strides_of(tensor));
}

bool has_geometry(const DLTensor& tensor, std::span<const int64_t> shape, std::span<const int64_t> strides) {
  return std::ranges::equal(shape_of(tensor), shape) && std::ranges::equal(strides_of(tensor), strides);
}

void release_block(void* data) { runtime::block_memory().give_back(data); }

// A tensor whose memory is a block, which is kept for the next call when the tensor ends.
PyObject* allocate_block(int64_t bytes, void* wanted, DType dtype, std::span<const int64_t> shape,
                         std::span<const int64_t> strides, void** data) {
  *data = runtime::block_memory().take(bytes, wanted);
  try {
    nb::gil_scoped_acquire gil;
    return tensor_over(*data, dtype, shape, strides, &release_block);
  } catch (...) {
    release_block(*data);
    throw;
  }
}

// Builds the Python arguments of one extern call and remembers what memory they cover.
class Arguments {
 public:
  explicit Arguments(const runtime::CallValueList& values) {
    objects_.reserve(values.size());
    for (const runtime::CallValue& value : values) objects_.push_back(convert(value));
    for (const nb::object& object : objects_) pointers_.push_back(object.ptr());
  }

  PyObject* const* data() const { return pointers_.data(); }
  size_t size() const { return pointers_.size(); }

  bool share_memory_with(const DLTensor& tensor) const {
    MemoryRange range = range_of(tensor);
    return std::ranges::any_of(memory_, [&](const MemoryRange& other) { return other.overlaps(range); });
  }

 private:
  nb::object convert(const runtime::CallValue& value) {
    return std::visit([this](const auto& v) { return nb::steal(make(v)); }, value.value);
  }

  PyObject* make(std::monostate) { return Py_NewRef(Py_None); }
  PyObject* make(bool value) { return PyBool_FromLong(value); }
  PyObject* make(int64_t value) { return PyLong_FromLongLong(value); }
  PyObject* make(double value) { return PyFloat_FromDouble(value); }
  PyObject* make(const std::string& value) {
    return PyUnicode_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size()));
  }
  PyObject* make(const target::TorchConstant& value) { return torch_constant(value); }

  PyObject* make(const runtime::CallTensor& tensor) {
    auto* base = static_cast<PyObject*>(tensor.base);
    if (!base) {
      memory_.push_back(range_of(tensor.data, byte_size(tensor.dtype), tensor.shape, tensor.strides));
      if (tensor.offset == 0 || !tensor.data)
        return tensor_over(tensor.data, tensor.dtype, tensor.shape, tensor.strides);
      return part_of_buffer(tensor);
    }
    DLTensor whole;
    if (!view_tensor(base, whole)) return Py_NewRef(base);
    // The executor knows no memory for results of foreign dtypes; they are nobody else's.
    if (tensor.data) memory_.push_back(range_of(whole));
    if (!dtype_of(whole.dtype)) return Py_NewRef(base);
    if (tensor.offset == 0 && has_geometry(whole, tensor.shape, tensor.strides)) return Py_NewRef(base);
    return as_strided(base, tensor.shape, tensor.strides, tensor.offset);
  }

  // A planned buffer from its start, so that the tensor has the offset that tracing knows: AOTAutograd takes a view of the
  // library to lie in an argument where the result's own offset says.
  static PyObject* part_of_buffer(const runtime::CallTensor& tensor) {
    int64_t last = tensor.offset;
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      last += std::max<int64_t>(tensor.shape[i] - 1, 0) * tensor.strides[i];
    const int64_t length[] = {last + 1}, step[] = {1};
    auto* begin = static_cast<char*>(tensor.data) - tensor.offset * byte_size(tensor.dtype);
    nb::object whole = nb::steal(tensor_over(begin, tensor.dtype, length, step));
    if (!whole.is_valid()) return nullptr;
    return as_strided(whole.ptr(), tensor.shape, tensor.strides, tensor.offset);
  }

  PyObject* make(const runtime::CallValueList& values) {
    nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(values.size())));
    if (!list.is_valid()) throw nb::python_error();
    for (size_t i = 0; i < values.size(); ++i)
      PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), convert(values[i]).release().ptr());
    return list.release().ptr();
  }

  std::vector<nb::object> objects_;
  std::vector<PyObject*> pointers_;
  std::vector<MemoryRange> memory_;
};

// Tensors and Nones in order, through nested tuples and lists. Numbers are left out: tracing knows them as sizes.
void collect_tensors(PyObject* object, std::vector<PyObject*>& out) {
  if (object == Py_None || is_tensor(object)) {
    out.push_back(object);
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(object);
    for (Py_ssize_t i = 0; i < n; ++i) collect_tensors(PySequence_Fast_GET_ITEM(object, i), out);
  }
}

// The same elements with the same strides in memory of its own, overlaps included.
PyObject* copy_of(PyObject* tensor) {
  nb::object copy = kerf_function("kerf.extern", "copy_strided")(nb::handle(tensor));
  return copy.release().ptr();
}

}  // namespace

ExternTable::ExternTable(const runtime::Plan& plan, const std::vector<nb::object>& functions) {
  nb::object resolve = kerf_function("kerf.extern", "resolve");
  for (const auto& step : plan.steps) {
    const auto* call = std::get_if<target::ExternCall>(&step);
    if (!call) continue;
    Entry entry;
    if (call->op.starts_with(kPythonPrefix)) {
      size_t position = std::stoul(call->op.substr(kPythonPrefix.size()));
      CHECK(position < functions.size(), "{} of {} Python functions", call->op, functions.size());
      entry.callable = functions[position];
    } else {
      entry.callable = resolve(call->op.c_str());
    }
    nb::list keywords;
    for (const target::ExternArgument& argument : call->arguments)
      if (!argument.keyword.empty()) keywords.append(argument.keyword.c_str());
    entry.keyword_count = keywords.size();
    if (entry.keyword_count) entry.keywords = nb::tuple(keywords);
    entries_.emplace(call, std::move(entry));
  }
}

const ExternTable::Entry& ExternTable::entry(const target::ExternCall& call) const {
  auto found = entries_.find(&call);
  CHECK(found != entries_.end(), "extern {} is not a step of this plan", call.op);
  return found->second;
}

runtime::HostTensor PythonHost::allocate(DType dtype, std::span<const int64_t> shape,
                                         std::span<const int64_t> strides, runtime::Place place,
                                         void** data) {
  const int64_t bytes = runtime::span_elements(shape, strides) * byte_size(dtype);
  if (place.is_kept && bytes >= runtime::kBlockBytes)
    return allocate_block(bytes, place.wanted, dtype, shape, strides, data);
  nb::gil_scoped_acquire gil;
  PyObject* tensor = empty_strided(dtype, shape, strides);
  DLTensor geometry;
  CHECK(view_tensor(tensor, geometry), "a tensor from empty_strided has no DLPack view");
  *data = geometry.data;
  return tensor;
}

void PythonHost::release(runtime::HostTensor tensor) {
  nb::gil_scoped_acquire gil;
  Py_XDECREF(static_cast<PyObject*>(tensor));
}

void PythonHost::drop_input(size_t index) {
  nb::gil_scoped_acquire gil;
  inputs_[index].reset();
}

runtime::HostTensor PythonHost::view(runtime::HostTensor base, std::span<const int64_t> shape,
                                     std::span<const int64_t> strides, int64_t offset) {
  nb::gil_scoped_acquire gil;
  auto* object = static_cast<PyObject*>(base);
  DLTensor whole;
  if (offset == 0 && view_tensor(object, whole) && has_geometry(whole, shape, strides))
    return Py_NewRef(object);
  return as_strided(object, shape, strides, offset);
}

void PythonHost::call(const target::ExternCall& call, const runtime::CallValueList& arguments,
                      std::span<runtime::HostTensor> results) {
  nb::gil_scoped_acquire gil;
  const ExternTable::Entry& entry = externs_.entry(call);
  Arguments converted(arguments);
  nb::object result = nb::steal(
      PyObject_Vectorcall(entry.callable.ptr(), converted.data(), converted.size() - entry.keyword_count,
                          entry.keywords.is_valid() ? entry.keywords.ptr() : nullptr));
  if (!result.is_valid()) throw nb::python_error();
  if (results.empty()) return;  // called for its effect

  std::vector<PyObject*> tensors;
  collect_tensors(result.ptr(), tensors);
  if (tensors.size() != results.size())
    throw RuntimeError(fmt::format("{} returned {} tensors where tracing saw {} ({})", call.op,
                                   tensors.size(), results.size(), call.source));
  std::vector<nb::object> owned;
  owned.reserve(tensors.size());
  for (PyObject* tensor : tensors) {
    DLTensor geometry;
    bool is_shared =
        tensor != Py_None && view_tensor(tensor, geometry) && converted.share_memory_with(geometry);
    owned.push_back(is_shared ? nb::steal(copy_of(tensor)) : nb::borrow(tensor));
  }
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = owned[i].is_none() ? nullptr : owned[i].release().ptr();
}

runtime::TensorRef PythonHost::describe(runtime::HostTensor tensor) {
  nb::gil_scoped_acquire gil;
  runtime::TensorRef result;
  result.host = tensor;
  DLTensor geometry;
  if (!view_tensor(static_cast<PyObject*>(tensor), geometry)) return result;
  result.shape = shape_of(geometry);
  result.strides = strides_of(geometry);
  if (std::optional<DType> dtype = dtype_of(geometry.dtype)) {
    result.data = geometry.data;
    result.dtype = *dtype;
  }
  return result;
}

}  // namespace kerf::bindings
