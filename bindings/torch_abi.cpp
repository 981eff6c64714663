#include "torch_abi.h"

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/check.h"

namespace nb = nanobind;

namespace kerf::bindings {
namespace {

constexpr DType kDTypes[] = {
#define DTYPE(name, ...) DType::name,
#include "base/dtype.def"
#undef DTYPE
};

// Lives until the process ends: its references are never given back, as the interpreter may be gone by then.
struct TorchAbi {
  const DLPackExchangeAPI* dlpack = nullptr;
  PyTypeObject* tensor_type = nullptr;
  PyObject* empty_strided_cpu =
      nullptr;  // torch's own fast path (0.6 us against 1.0); absent in some versions
  PyObject* empty_strided = nullptr;
  PyObject* dtype_keyword = nullptr;  // ("dtype",)
  PyObject* as_strided_name = nullptr;
  PyObject* storage_offset_name = nullptr;
  PyObject* detach_name = nullptr;
  PyObject* is_conj_name = nullptr;
  PyObject* is_neg_name = nullptr;
  std::array<PyObject*, std::size(kDTypes)> dtypes{};
};

const DLPackExchangeAPI* exchange_table(nb::handle tensor_type) {
  if (!nb::hasattr(tensor_type, "__dlpack_c_exchange_api__"))
    throw UserError(
        "this torch has no DLPack exchange table (torch.Tensor.__dlpack_c_exchange_api__); "
        "Kerf needs torch 2.11 or newer");
  nb::object capsule = tensor_type.attr("__dlpack_c_exchange_api__");
  auto* header =
      static_cast<DLPackExchangeAPIHeader*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (!header) throw nb::python_error();
  while (header && header->version.major > DLPACK_MAJOR_VERSION) header = header->prev_api;
  auto* table = reinterpret_cast<const DLPackExchangeAPI*>(header);
  if (!table || table->header.version.major != DLPACK_MAJOR_VERSION ||
      !table->dltensor_from_py_object_no_sync)
    throw UserError(
        "the DLPack exchange table of this torch is of another major version than Kerf was built for");
  return table;
}

TorchAbi* load() {
  auto abi = std::make_unique<TorchAbi>();
  nb::module_ torch = nb::module_::import_("torch");
  nb::object tensor_type = torch.attr("Tensor");
  abi->dlpack = exchange_table(tensor_type);
  abi->tensor_type = reinterpret_cast<PyTypeObject*>(tensor_type.release().ptr());
  nb::object guards = torch.attr("_C").attr("_dynamo").attr("guards");
  if (nb::hasattr(guards, "_empty_strided_cpu"))
    abi->empty_strided_cpu = nb::object(guards.attr("_empty_strided_cpu")).release().ptr();
  abi->empty_strided = nb::object(torch.attr("empty_strided")).release().ptr();
  abi->dtype_keyword = nb::make_tuple("dtype").release().ptr();
  abi->as_strided_name = nb::str("as_strided").release().ptr();
  abi->storage_offset_name = nb::str("storage_offset").release().ptr();
  abi->detach_name = nb::str("detach").release().ptr();
  abi->is_conj_name = nb::str("is_conj").release().ptr();
  abi->is_neg_name = nb::str("is_neg").release().ptr();
  for (DType dtype : kDTypes)
    abi->dtypes[static_cast<size_t>(dtype)] =
        nb::object(torch.attr(std::string(info(dtype).torch_name).c_str())).release().ptr();
  return abi.release();
}

const TorchAbi& abi() {
  static TorchAbi* loaded = nullptr;  // guarded by the GIL; a second load in a race is harmless
  if (!loaded) loaded = load();
  return *loaded;
}

PyObject* check(PyObject* result) {
  if (!result) throw nb::python_error();
  return result;
}

nb::object integer_tuple(std::span<const int64_t> values) {
  nb::object tuple = nb::steal(check(PyTuple_New(static_cast<Py_ssize_t>(values.size()))));
  for (size_t i = 0; i < values.size(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), check(PyLong_FromLongLong(values[i])));
  return tuple;
}

// The managed tensor that torch keeps for a tensor over foreign memory; torch calls `end` with the tensor's end, on any
// thread and without the GIL.
struct Foreign {
  DLManagedTensorVersioned managed{};
  std::vector<int64_t> geometry;  // shape, then strides
  ReleaseMemory release = nullptr;
  static void end(DLManagedTensorVersioned* self) {
    std::unique_ptr<Foreign> foreign(static_cast<Foreign*>(self->manager_ctx));
    if (foreign->release) foreign->release(self->dl_tensor.data);
  }
};

}  // namespace

bool is_tensor(PyObject* object) { return PyObject_TypeCheck(object, abi().tensor_type); }

bool view_tensor(PyObject* object, DLTensor& tensor) {
  const TorchAbi& torch = abi();
  if (!PyObject_TypeCheck(object, torch.tensor_type)) return false;
  if (torch.dlpack->dltensor_from_py_object_no_sync(object, &tensor) != 0) {
    PyErr_Clear();
    return false;
  }
  tensor.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  tensor.byte_offset = 0;
  return true;
}

std::optional<DType> dtype_of(DLDataType type) {
  if (type.lanes != 1) return std::nullopt;
  for (DType dtype : kDTypes) {
    const DTypeInfo& row = info(dtype);
    if (row.dlpack_code == type.code && row.dlpack_bits == type.bits) return dtype;
  }
  return std::nullopt;
}

PyObject* empty_strided(DType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides) {
  const TorchAbi& torch = abi();
  nb::object sizes = integer_tuple(shape);
  nb::object steps = integer_tuple(strides);
  PyObject* arguments[] = {sizes.ptr(), steps.ptr(), torch.dtypes[static_cast<size_t>(dtype)]};
  if (torch.empty_strided_cpu)
    return check(PyObject_Vectorcall(torch.empty_strided_cpu, arguments, 3, nullptr));
  return check(PyObject_Vectorcall(torch.empty_strided, arguments, 2, torch.dtype_keyword));
}

PyObject* as_strided(PyObject* base, std::span<const int64_t> shape, std::span<const int64_t> strides,
                     int64_t offset) {
  const TorchAbi& torch = abi();
  nb::object start = nb::steal(check(PyObject_CallMethodNoArgs(base, torch.storage_offset_name)));
  int64_t begin = PyLong_AsLongLong(start.ptr());
  if (begin == -1 && PyErr_Occurred()) throw nb::python_error();
  nb::object sizes = integer_tuple(shape);
  nb::object steps = integer_tuple(strides);
  nb::object position = nb::steal(check(PyLong_FromLongLong(begin + offset)));
  PyObject* arguments[] = {base, sizes.ptr(), steps.ptr(), position.ptr()};
  return check(PyObject_VectorcallMethod(torch.as_strided_name, arguments, 4, nullptr));
}

PyObject* alias_of(nb::object tensor) {
  return check(PyObject_CallMethodNoArgs(tensor.ptr(), abi().detach_name));
}

PyObject* without_lazy_bits(PyObject* tensor) {
  const TorchAbi& torch = abi();
  nb::object conjugated = nb::steal(check(PyObject_CallMethodNoArgs(tensor, torch.is_conj_name)));
  nb::object negated = nb::steal(check(PyObject_CallMethodNoArgs(tensor, torch.is_neg_name)));
  if (conjugated.ptr() == Py_False && negated.ptr() == Py_False) return Py_NewRef(tensor);
  // torch's own resolve_conj gives other strides than the graph was traced with.
  return kerf_function("kerf.extern", "copy_strided")(nb::handle(tensor)).release().ptr();
}

PyObject* tensor_over(void* data, DType dtype, std::span<const int64_t> shape,
                      std::span<const int64_t> strides, ReleaseMemory release) {
  CHECK(shape.size() == strides.size(), "{} sizes, {} strides", shape.size(), strides.size());
  const DTypeInfo& row = info(dtype);
  auto foreign = std::make_unique<Foreign>();
  foreign->geometry.assign(shape.begin(), shape.end());
  foreign->geometry.insert(foreign->geometry.end(), strides.begin(), strides.end());
  foreign->release = release;
  DLManagedTensorVersioned& managed = foreign->managed;
  managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.manager_ctx = foreign.get();
  managed.deleter = &Foreign::end;
  managed.dl_tensor.data = data;
  managed.dl_tensor.device = {kDLCPU, 0};
  managed.dl_tensor.ndim = static_cast<int32_t>(shape.size());
  managed.dl_tensor.dtype = {static_cast<uint8_t>(row.dlpack_code), static_cast<uint8_t>(row.dlpack_bits), 1};
  managed.dl_tensor.shape = foreign->geometry.data();
  managed.dl_tensor.strides = foreign->geometry.data() + shape.size();
  void* result = nullptr;
  if (abi().dlpack->managed_tensor_to_py_object_no_sync(&managed, &result) != 0) throw nb::python_error();
  foreign.release();  // now torch's
  return static_cast<PyObject*>(result);
}

PyObject* torch_constant(const target::TorchConstant& constant) {
  using Kind = target::TorchConstant::Kind;
  static auto* known = new std::unordered_map<std::string, PyObject*>();  // guarded by the GIL
  const bool is_device = constant.kind == Kind::device;
  std::string key = (is_device ? "device " : "") + constant.name;
  auto found = known->find(key);
  if (found == known->end()) {
    nb::module_ torch = nb::module_::import_("torch");
    nb::object value = is_device ? nb::object(torch.attr("device")(constant.name.c_str()))
                                 : nb::object(torch.attr(constant.name.c_str()));
    found = known->emplace(std::move(key), value.release().ptr()).first;
  }
  return Py_NewRef(found->second);
}

nb::object kerf_function(const char* module, const char* name) {
  return nb::module_::import_(module).attr(name);
}

}  // namespace kerf::bindings
