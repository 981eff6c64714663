#include "driver/report.h"

#include <algorithm>
#include <unordered_map>

#include "loop/walk.h"
#include "sched/outer.h"
#include "sched/profit.h"
#include "sym/eval.h"

namespace kerf::driver {

namespace {

using sym::Expr;

class Describer {
 public:
  Describer(const loop::Program& program, const SizeHints& hints) : program_(program) {
    std::vector<int64_t> values = hinted_sizes(program.sizes, hints);
    for (size_t i = 0; i < values.size(); ++i) {
      sizes_.emplace(&program.sizes[i].symbol.symbol(), values[i]);
    }
  }

  KernelRecord kernel(const loop::Launch& launch) const {
    KernelRecord record{launch.kernel.name, launch.kernel.sources, launch.merged, 0, 0};
    struct Moved {
      int64_t read = 0, written = 0;
    };
    const auto& buffers = launch.kernel.buffers;
    IdVector<loop::BufferId, Moved> moved(buffers.size());
    for (const sched::PlacedAccess& access : sched::placed_accesses(launch.kernel)) {
      int64_t points = 1;
      for (loop::AxisId axis : access.axes) points *= value(launch.kernel.axes[axis].extent);
      (access.is_store ? moved[access.buffer].written : moved[access.buffer].read) += points;
    }
    loop::walk(launch.kernel.body, [&](const loop::Stmt& stmt, const loop::Path&) {
      const auto* store = std::get_if<loop::Store>(&stmt);
      if (store && store->mode == loop::StoreMode::add)
        moved[store->buffer].read = moved[store->buffer].written;
    });
    for (loop::BufferId id(0); id < buffers.end_id(); ++id.index) {
      const int64_t whole = value(loop::element_count(launch.kernel, id));
      const int64_t width = byte_size(buffers[id].dtype);
      record.bytes_read += std::min(moved[id].read, whole) * width;
      record.bytes_written += std::min(moved[id].written, whole) * width;
    }
    return record;
  }

  ExternRecord external(const target::ExternCall& call) const {
    ExternRecord record{call.op, call.reason, call.source, bytes(call.arguments), call.is_matmul_like};
    for (const target::ExternResult& result : call.results)
      record.bytes += elements(result.shape, {}) * byte_size(result.dtype);
    return record;
  }

 private:
  int64_t value(Expr expr) const {
    auto of = [&](const sym::Symbol& symbol) {
      auto found = sizes_.find(&symbol);
      return found == sizes_.end() ? int64_t{0} : found->second;
    };
    return std::max<int64_t>(sym::evaluate(expr, of).value_or(0), 0);
  }

  // Distinct elements: an expanded dimension (stride 0) holds one.
  int64_t elements(const std::vector<Expr>& shape, const std::vector<Expr>& strides) const {
    int64_t count = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      const bool expanded = i < strides.size() && strides[i].is_constant(0);
      const int64_t extent = value(shape[i]);
      count *= expanded ? std::min<int64_t>(extent, 1) : extent;
    }
    return count;
  }

  int64_t bytes(const target::ExternArgumentList& list) const {
    int64_t total = 0;
    for (const target::ExternArgument& argument : list) {
      if (const auto* view = std::get_if<target::TensorView>(&argument.value))
        total += elements(view->shape, view->strides) * byte_size(view->dtype);
      else if (const auto* items = std::get_if<target::ExternArgumentList>(&argument.value))
        total += bytes(*items);
    }
    return total;
  }

  const loop::Program& program_;
  std::unordered_map<const sym::Symbol*, int64_t> sizes_;
};

}  // namespace

std::vector<int64_t> hinted_sizes(const std::vector<loop::Size>& sizes, const SizeHints& hints) {
  sym::Facts facts;
  for (const loop::Size& size : sizes) facts.set_range(size.symbol, size.range);
  std::vector<int64_t> values;
  for (const loop::Size& size : sizes) {
    auto hint = std::ranges::find(hints, size.symbol.symbol().name, &SizeHints::value_type::first);
    values.push_back(hint == hints.end() ? sched::hinted(size.symbol, facts) : hint->second);
  }
  return values;
}

StepRecords describe_steps(const loop::Program& program, const SizeHints& hints) {
  Describer describer(program, hints);
  StepRecords records;
  for (const auto& step : program.steps) {
    if (const auto* call = std::get_if<target::ExternCall>(&step))
      records.externs.push_back(describer.external(*call));
    else
      records.kernels.push_back(describer.kernel(std::get<loop::Launch>(step)));
  }
  return records;
}

}  // namespace kerf::driver
