#include "driver/report.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "loop/walk.h"
#include "sched/outer.h"
#include "sched/profit.h"
#include "sym/eval.h"

namespace kerf::driver {

namespace {

using sym::Expr;

// Calls that touch of argument `data`, and of results that are written in place, as many elements as another tensor has.
struct Lookup {
  std::string_view op;
  size_t data;
  std::optional<size_t> as_many_as;  // argument; absent: the result
};

constexpr Lookup kLookups[] = {
    {"aten.embedding.default", 0, {}},       {"aten.index_select.default", 0, {}},
    {"aten.gather.default", 0, {}},          {"aten.index.Tensor", 0, {}},
    {"aten.nll_loss_forward.default", 0, 1}, {"aten.nll_loss2d_forward.default", 0, 1},
    {"aten.index_put_.default", 0, 2},       {"aten.index_add_.default", 0, 3},
    {"aten.index_copy_.default", 0, 3},      {"aten.scatter_.src", 0, 3},
    {"aten.scatter_add_.default", 0, 3},     {"aten.scatter_reduce_.two", 0, 3},
};

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
    auto lookup = std::ranges::find(kLookups, call.op, &Lookup::op);
    if (lookup == std::end(kLookups)) return record;
    const auto* data = tensor(call, lookup->data);
    const auto* other = lookup->as_many_as ? tensor(call, *lookup->as_many_as) : nullptr;
    if (!data || call.results.empty() || (lookup->as_many_as && !other)) return record;
    const target::ExternResult& result = call.results[0];
    int64_t whole = elements(data->shape, data->strides);
    int64_t touched = other ? elements(other->shape, {}) : elements(result.shape, {});
    int64_t spared = std::max<int64_t>(whole - touched, 0) * byte_size(data->dtype);
    record.bytes -= result.buffer == data->buffer ? 2 * spared : spared;
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

  static const target::TensorView* tensor(const target::ExternCall& call, size_t argument) {
    return argument < call.arguments.size() ? std::get_if<target::TensorView>(&call.arguments[argument].value)
                                            : nullptr;
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
