#include "errors.h"

#include <nanobind/nanobind.h>

#include "base/error.h"
#include "torch_abi.h"

namespace nb = nanobind;

namespace kerf::bindings {
namespace {

void raise(const char* name, const char* message) {
  try {
    nb::object type = kerf_function("kerf.errors", name);
    PyErr_SetString(type.ptr(), message);
  } catch (nb::python_error& error) {  // the interpreter is shutting down: the import failed
    error.restore();
  }
}

}  // namespace

void register_errors() {
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const IndexError& error) {
      raise("IndexError", error.what());
    } catch (const UserError& error) {
      raise("UserError", error.what());
    } catch (const InternalError& error) {
      raise("InternalError", error.what());
    } catch (const Error& error) {
      raise("RuntimeError", error.what());
    }
  });
}

}  // namespace kerf::bindings
