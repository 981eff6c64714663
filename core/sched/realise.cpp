#include "sched/realise.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "loop/build.h"
#include "sched/nest.h"
#include "sched/profit.h"
#include "sched/traffic.h"
#include "sched/tuning.h"
#include "sym/simplify.h"

namespace kerf::sched {

using axis::AxisInfo;
using sym::Expr;
using target::BufferIndex;

namespace {

// What a load reads, whoever reads it: a buffer through an index over axes of these extents, without those that it does not
// mention. The order of the axes is that of the copy in memory.
struct View {
  BufferIndex buffer;
  std::vector<Expr> extents;
  Expr index;  // over symbols by position

  friend bool operator==(const View&, const View&) = default;
};

struct Reading {
  size_t step;
  size_t load;
  std::vector<AxisInfo> axes;  // of the nest, in the order of the view's
  View view;
};

bool has_stride_one(Expr index, Expr axis) {
  std::optional<Expr> stride = axis::stride_over(index, axis);
  return stride && stride->is_constant(1);
}

class Realiser {
 public:
  explicit Realiser(const loop::Program& program)
      : program_(program),
        result_(program),
        facts_(loop::facts_of(program.sizes)),
        traffic_(traffic_of(program)),
        folded_(program.buffers.size()) {
    for (const auto& step : program.steps) {
      const auto* launch = std::get_if<loop::Launch>(&step);
      nests_.push_back(launch ? take_apart(launch->kernel) : std::nullopt);
    }
  }

  loop::Program run() {
    find_short_rows();
    for (size_t step = nests_.size(); step-- > 0;)
      if (nests_[step]) find_strided_rows(step);
    std::stable_sort(readings_.begin(), readings_.end(),
                     [](const Reading& a, const Reading& b) { return a.step < b.step; });
    std::vector<BufferIndex> copies;
    for (const Reading& reading : readings_) copies.push_back(copy_of(reading));
    for (size_t i = 0; i < readings_.size(); ++i) redirect(readings_[i], copies[i]);
    std::vector<std::variant<loop::Launch, target::ExternCall>> steps;
    auto place = [&](size_t after) {
      for (loop::Launch& launch : copies_after_[after]) steps.emplace_back(std::move(launch));
    };
    place(0);
    for (size_t step = 0; step < result_.steps.size(); ++step) {
      steps.push_back(std::move(result_.steps[step]));
      place(step + 1);
    }
    result_.steps = std::move(steps);
    return std::move(result_);
  }

 private:
  const loop::Launch& launch(size_t step) const { return std::get<loop::Launch>(program_.steps[step]); }
  BufferIndex buffer_of(size_t step, loop::BufferId buffer) const {
    return launch(step).arguments[buffer.index];
  }
  static bool is_one(const AxisInfo& axis) { return axis.extent.is_constant(1); }

  // A plain element of memory that nobody changes.
  bool is_readable(size_t step, const NestLoad& load) const {
    const BufferIndex buffer = buffer_of(step, load.buffer);
    if (!nests_[step]->kernel->values[load.value].operands.empty() || !traffic_.is_stable(buffer, program_))
      return false;
    std::vector<Expr> symbols;
    sym::collect_symbols(load.index, symbols);
    auto known = [&](Expr symbol) {
      return symbol.symbol().kind == sym::SymbolKind::axis || symbol.symbol().kind == sym::SymbolKind::size;
    };
    return std::all_of(symbols.begin(), symbols.end(), known);
  }

  bool is_realisation(size_t step) const {
    return std::any_of(nests_[step]->stores.begin(), nests_[step]->stores.end(), [&](const loop::Store& s) {
      return program_.buffers[buffer_of(step, s.buffer)].realised;
    });
  }

  // The load over the axes that it mentions, and `last` behind them.
  std::optional<Reading> reading(size_t step, size_t load, const AxisInfo& last) const {
    const NestLoad& of = nests_[step]->loads[load];
    Reading result{.step = step, .load = load};
    for (const AxisInfo& axis : nests_[step]->all_axes())
      if (axis.symbol != last.symbol && !is_one(axis) && sym::mentions(of.index, axis.symbol))
        result.axes.push_back(axis);
    result.axes.push_back(last);
    std::vector<sym::Substitution> by_position;
    int64_t elements = 1;
    for (const AxisInfo& axis : result.axes) {
      const std::string name = fmt::format("v{}", by_position.size());
      by_position.push_back({axis.symbol, program_.context->symbol(name, sym::SymbolKind::axis)});
      result.view.extents.push_back(axis.extent);
      elements *= hinted(axis.extent, facts_);
    }
    if (result.axes.size() < 2 || elements < tuning::min_shared_elements) return std::nullopt;
    result.view.buffer = buffer_of(step, of.buffer);
    result.view.index = sym::substitute(of.index, by_position);
    return result;
  }

  void find_short_rows() {
    std::vector<Reading> found;
    for (size_t step = 0; step < nests_.size(); ++step) {
      if (!nests_[step] || is_realisation(step)) continue;
      const std::vector<AxisInfo> axes = nests_[step]->all_axes();
      if (axes.empty() || !axes.back().extent.is_constant()) continue;
      const int64_t length = axes.back().extent.constant();
      if (length < 2 || length >= tuning::short_row) continue;
      for (size_t i = 0; i < nests_[step]->loads.size(); ++i) {
        const NestLoad& load = nests_[step]->loads[i];
        if (sym::mentions(load.index, axes.back().symbol) || !is_readable(step, load)) continue;
        if (std::optional<Reading> one = reading(step, i, axes.back())) found.push_back(std::move(*one));
      }
    }
    for (Reading& one : found)
      if (std::any_of(found.begin(), found.end(),
                      [&](const Reading& o) { return o.step != one.step && o.view == one.view; }))
        readings_.push_back(one);
  }

  // From the last step to the first, so that `folded_` knows of all readers: its rows, along stride 1, are folded.
  void find_strided_rows(size_t step) {
    const Nest& nest = *nests_[step];
    std::optional<AxisInfo> row = row_of(step);
    if (!row) return;
    bool lies_along = !nest.reduces();
    for (const NestLoad& load : nest.loads) {
      if (!has_stride_one(load.index, row->symbol)) continue;
      folded_[buffer_of(step, load.buffer)] = true;
      lies_along = true;
    }
    if (!lies_along || is_realisation(step)) return;
    for (size_t i = 0; i < nest.loads.size(); ++i) {
      const NestLoad& load = nest.loads[i];
      if (program_.buffers[buffer_of(step, load.buffer)].kind == loop::BufferKind::input ||
          !lies_across(nest, load.index, *row) || !is_readable(step, load))
        continue;
      std::optional<Reading> one = reading(step, i, *row);
      if (!one) continue;
      if (is_copy(nest))
        result_.buffers[buffer_of(step, nest.stores.front().buffer)].realised = true;
      else
        readings_.push_back(std::move(*one));
    }
  }

  // The axis along rows that are folded, here or by a reader of the result.
  std::optional<AxisInfo> row_of(size_t step) const {
    const Nest& nest = *nests_[step];
    if (nest.reduces()) {
      auto row = std::find_if_not(nest.reduced.rbegin(), nest.reduced.rend(), is_one);
      return row == nest.reduced.rend() ? std::nullopt : std::optional(*row);
    }
    for (const loop::Store& store : nest.stores)
      if (folded_[buffer_of(step, store.buffer)])
        for (const AxisInfo& axis : nest.kept)
          if (!is_one(axis) && has_stride_one(store.index, axis.symbol)) return axis;
    return std::nullopt;
  }

  static bool lies_across(const Nest& nest, Expr index, const AxisInfo& row) {
    std::optional<Expr> stride = axis::stride_over(index, row.symbol);
    if (!stride || stride->is_constant(0) || stride->is_constant(1)) return false;
    const std::vector<AxisInfo> axes = nest.all_axes();
    return std::any_of(axes.begin(), axes.end(), [&](const AxisInfo& axis) {
      return axis.symbol != row.symbol && !is_one(axis) && has_stride_one(index, axis.symbol);
    });
  }

  static bool is_copy(const Nest& nest) {
    return !nest.reduces() && nest.loads.size() == 1 && nest.stores.size() == 1 &&
           nest.stores[0].value == nest.loads[0].value;
  }

  BufferIndex copy_of(const Reading& reading) {
    auto known = std::find_if(copies_.begin(), copies_.end(),
                              [&](const auto& copy) { return copy.first == reading.view; });
    if (known != copies_.end()) return known->second;
    const loop::ProgramBuffer& source = program_.buffers[reading.view.buffer];
    const auto buffer = static_cast<BufferIndex>(result_.buffers.size());
    const std::string name = fmt::format("{}_view_{}", source.name, copies_.size());
    result_.buffers.push_back({.name = name,
                               .dtype = source.dtype,
                               .elements = axis::extent_product(*program_.context, reading.axes),
                               .realised = true});
    const std::vector<size_t>& writers = traffic_.writers[reading.view.buffer];
    copies_after_[writers.empty() ? 0 : writers[0] + 1].push_back(copy_kernel(reading, name, buffer));
    copies_.emplace_back(reading.view, buffer);
    return buffer;
  }

  loop::Launch copy_kernel(const Reading& reading, const std::string& name, BufferIndex buffer) const {
    const loop::Kernel& reader = *nests_[reading.step]->kernel;
    const NestLoad& load = nests_[reading.step]->loads[reading.load];
    loop::KernelBuilder builder(*program_.context, name);
    builder.add_sizes(sizes_in(reading, reader.buffers[load.buffer].shape));
    loop::BufferId from =
        builder.add_buffer(program_.buffers[reading.view.buffer].name, reader.buffers[load.buffer].dtype,
                           reader.buffers[load.buffer].shape);
    loop::BufferId to = builder.add_buffer(name, reader.buffers[load.buffer].dtype, reading.view.extents,
                                           loop::BufferMode::out);
    std::vector<AxisInfo> axes;
    std::vector<sym::Substitution> moved;
    for (const AxisInfo& axis : reading.axes) {
      loop::AxisId id = builder.add_axis(fmt::format("i{}", axes.size()), axis.extent);
      builder.open_loop(id);
      axes.push_back({builder.symbol(id), axis.extent});
      moved.push_back({axis.symbol, builder.symbol(id)});
    }
    builder.store(to, axis::row_major(*program_.context, axes),
                  builder.load(from, sym::substitute(load.index, moved)));
    for (size_t i = 0; i < axes.size(); ++i) builder.close_loop();
    loop::Launch result{builder.finish(), {reading.view.buffer, buffer}};
    result.kernel.sources = reader.sources;
    return result;
  }

  std::vector<loop::Size> sizes_in(const Reading& reading, const std::vector<Expr>& shape) const {
    std::vector<Expr> symbols;
    sym::collect_symbols(reading.view.index, symbols);
    for (Expr extent : reading.view.extents) sym::collect_symbols(extent, symbols);
    for (Expr extent : shape) sym::collect_symbols(extent, symbols);
    std::vector<loop::Size> used;
    for (const loop::Size& size : program_.sizes)
      if (std::find(symbols.begin(), symbols.end(), size.symbol) != symbols.end()) used.push_back(size);
    return used;
  }

  // The load reads the copy.
  void redirect(const Reading& reading, BufferIndex copy) {
    auto& launch = std::get<loop::Launch>(result_.steps[reading.step]);
    loop::Kernel& kernel = launch.kernel;
    loop::Value& value = kernel.values[nests_[reading.step]->loads[reading.load].value];
    const loop::Buffer buffer{result_.buffers[copy].name, value.dtype, reading.view.extents};
    const auto& loads = nests_[reading.step]->loads;
    const loop::BufferId old = value.buffer;
    auto reads_old = [&](const NestLoad& load) { return kernel.values[load.value].buffer == old; };
    if (std::count_if(loads.begin(), loads.end(), reads_old) == 1) {
      kernel.buffers[old] = buffer;
      launch.arguments[old.index] = copy;
    } else {
      value.buffer = kernel.buffers.push_back(buffer);
      launch.arguments.push_back(copy);
    }
    value.index = axis::row_major(*program_.context, reading.axes);
  }

  const loop::Program& program_;
  loop::Program result_;
  sym::Facts facts_;
  Traffic traffic_;
  std::vector<std::optional<Nest>> nests_;
  std::vector<bool> folded_;
  std::vector<Reading> readings_;
  std::vector<std::pair<View, BufferIndex>> copies_;
  std::map<size_t, std::vector<loop::Launch>> copies_after_;  // by the number of steps before them
};

}  // namespace

loop::Program realise_views(const loop::Program& program) { return Realiser(program).run(); }

}  // namespace kerf::sched
