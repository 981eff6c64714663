// f64 between narrower buffers becomes f32: for targets without it.
#include <algorithm>

#include "loop/renumber.h"
#include "loop/walk.h"
#include "sched/tile_kernel.h"

namespace kerf::sched {

using loop::ValueId;

loop::Kernel narrow_doubles(const loop::Kernel& kernel) {
  auto is_double = [](const auto& item) { return item.dtype == DType::f64; };
  if (std::any_of(kernel.buffers.begin(), kernel.buffers.end(), is_double)) return kernel;
  if (std::none_of(kernel.values.begin(), kernel.values.end(), is_double)) return kernel;
  loop::Kernel result = kernel;
  IdVector<ValueId, ValueId> map(result.values.size());
  for (ValueId id(0); id < result.values.end_id(); ++id.index) {
    map[id] = id;
    loop::Value& value = result.values[id];
    if (!is_double(value)) continue;
    value.dtype = DType::f32;
    if (value.kind == loop::ValueKind::constant) value.literal = Scalar::of(DType::f32, value.literal.f);
  }
  // Casts between the two are nothing now.
  loop::walk(result.body, [&](const loop::Stmt& stmt, const loop::Path&) {
    const auto* define = std::get_if<loop::Define>(&stmt);
    if (!define) return;
    const loop::Value& value = result.values[define->value];
    if (value.kind == loop::ValueKind::apply && value.op == ops::ScalarOp::cast &&
        result.values[value.operands[0]].dtype == value.dtype)
      map[define->value] = map[value.operands[0]];
  });
  loop::replace_uses(result, map);
  return loop::remove_dead_values(result);
}

}  // namespace kerf::sched
