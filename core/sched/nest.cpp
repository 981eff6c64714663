#include "sched/nest.h"

namespace kerf::sched {

using loop::Block;
using loop::Stmt;

namespace {

axis::AxisInfo axis_info(const loop::Kernel& kernel, loop::AxisId id) {
  return {kernel.axes[id].symbol, kernel.axes[id].extent};
}

// The innermost block of a nest: defines, at most one reduce, defines, stores.
bool read_innermost(const Block& block, Nest& nest) {
  for (const Stmt& stmt : block) {
    if (const auto* define = std::get_if<loop::Define>(&stmt)) {
      (nest.reduces() ? nest.kept_values : nest.point_values).push_back(define->value);
    } else if (const auto* store = std::get_if<loop::Store>(&stmt)) {
      if (store->mode != loop::StoreMode::assign) return false;
      nest.stores.push_back(*store);
    } else if (const auto* reduce = std::get_if<loop::Reduce>(&stmt)) {
      if (nest.reduces() || !nest.stores.empty()) return false;
      for (loop::AxisId id : reduce->axes) nest.reduced.push_back(axis_info(*nest.kernel, id));
      for (const Stmt& inner : reduce->body) {
        const auto* inside = std::get_if<loop::Define>(&inner);
        if (!inside) return false;
        nest.point_values.push_back(inside->value);
      }
      nest.parts = reduce->parts;
    } else {
      return false;
    }
  }
  return !nest.stores.empty();
}

bool read_block(const Block& block, Nest& nest) {
  if (block.empty()) return false;
  const auto* loop = std::get_if<loop::Loop>(&block.back());
  if (!loop) return read_innermost(block, nest);
  for (size_t i = 0; i + 1 < block.size(); ++i) {
    const auto* define = std::get_if<loop::Define>(&block[i]);
    if (!define) return false;
    nest.point_values.push_back(define->value);
  }
  nest.kept.push_back(axis_info(*nest.kernel, loop->axis));
  return read_block(loop->body, nest);
}

void collect_loads(const std::vector<loop::ValueId>& values, Nest& nest) {
  for (loop::ValueId id : values) {
    const loop::Value& value = nest.kernel->values[id];
    if (value.kind == loop::ValueKind::load) nest.loads.push_back({id, value.buffer, value.index});
  }
}

// Extents that depend on other axes have no place on a common domain.
bool rectangular(const Nest& nest) {
  std::vector<axis::AxisInfo> axes = nest.all_axes();
  for (const axis::AxisInfo& axis : axes)
    for (const axis::AxisInfo& other : axes)
      if (sym::mentions(axis.extent, other.symbol)) return false;
  return true;
}

}  // namespace

std::vector<axis::AxisInfo> Nest::all_axes() const {
  std::vector<axis::AxisInfo> all = kept;
  all.insert(all.end(), reduced.begin(), reduced.end());
  return all;
}

std::optional<Nest> take_apart(const loop::Kernel& kernel) {
  Nest nest;
  nest.kernel = &kernel;
  for (const loop::Buffer& buffer : kernel.buffers)
    if (buffer.mode == loop::BufferMode::local || buffer.mode == loop::BufferMode::inout) return std::nullopt;
  if (!read_block(kernel.body, nest) || !rectangular(nest)) return std::nullopt;
  collect_loads(nest.point_values, nest);
  collect_loads(nest.kept_values, nest);
  return nest;
}

}  // namespace kerf::sched
