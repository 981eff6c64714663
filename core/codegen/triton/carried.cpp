// Values carried through memory from one iteration to the next: a scan's running sum. A tile computes iterations together, so
// such kernels have no text. Rows that a loop adds to (columns.cpp) are no such values.
#include <algorithm>

#include "codegen/triton/emission.h"
#include "loop/walk.h"

namespace kerf::codegen::triton {

namespace {

struct Access {
  loop::BufferId buffer;
  sym::Expr index;
  loop::Path path;
};

}  // namespace

std::optional<std::string> carried_buffer(const loop::Kernel& kernel, const axis::Coordinates& coordinates) {
  std::vector<Access> loads, stores;
  auto is_own = [&](loop::BufferId id) { return kernel.buffers[id].mode != loop::BufferMode::in; };
  loop::walk(kernel.body, [&](const loop::Stmt& stmt, const loop::Path& path) {
    if (const auto* store = std::get_if<loop::Store>(&stmt)) {
      if (!added_to_column(kernel, *store)) stores.push_back({store->buffer, store->index, path});
    } else if (const auto* define = std::get_if<loop::Define>(&stmt)) {
      const loop::Value& value = kernel.values[define->value];
      if (value.kind == loop::ValueKind::load && is_own(value.buffer))
        loads.push_back({value.buffer, value.index, path});
    }
  });
  for (const Access& load : loads)
    for (const Access& store : stores) {
      if (load.buffer != store.buffer) continue;
      for (size_t i = 0; i < std::min(load.path.size(), store.path.size()) && load.path[i] == store.path[i];
           ++i)
        for (loop::AxisId axis : loop::axes_of(*load.path[i])) {
          bool outer = coordinates.list[coordinates.of[axis]].kind == axis::CoordinateKind::outer;
          bool is_local = kernel.buffers[load.buffer].mode == loop::BufferMode::local;
          if (outer && is_local) continue;  // each iteration has its own
          if (!sym::mentions(store.index, kernel.axes[axis].symbol)) return kernel.buffers[load.buffer].name;
        }
    }
  return std::nullopt;
}

}  // namespace kerf::codegen::triton
