#pragma once
// Kerf's exceptions as Python's: kerf.UserError, kerf.RuntimeError and kerf.InternalError, all kerf.KerfError, and
// Python's own IndexError for an index out of range, as eager raises it.
namespace kerf::bindings {

// Called once when the module loads. The Python classes live in kerf.errors and are looked up when one is raised.
void register_errors();

}  // namespace kerf::bindings
