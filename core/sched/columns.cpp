#include "sched/columns.h"

#include <algorithm>
#include <set>

#include "sched/profit.h"
#include "sched/split_folds.h"
#include "sched/traffic.h"
#include "sym/simplify.h"

namespace kerf::sched {

using axis::AxisInfo;
using sym::Expr;
using target::BufferIndex;

namespace {

constexpr const char* kSuffix = "_columns";

class Columns {
 public:
  Columns(const loop::Program& program, const ColumnLimits& limits)
      : program_(program),
        limits_(limits),
        traffic_(traffic_of(program)),
        facts_(loop::facts_of(program.sizes)) {}

  GroupedColumns run() {
    Grouping whole = group_kernels(program_, limits_);
    std::set<size_t> steps = candidates(whole);
    while (!steps.empty()) {
      auto choose = [&](size_t step, const Nest& nest) {
        return steps.contains(step) ? cut(nest) : std::nullopt;
      };
      loop::Program split = split_folds(program_, choose, true, kSuffix);
      Grouping grouping = group_kernels(split, limits_);
      std::set<std::string> joined = names_of_column_sums(grouping);
      size_t removed = std::erase_if(
          steps, [&](size_t step) { return !joined.contains(parts_name(*whole.nests[step], kSuffix)); });
      if (removed == 0) return {std::move(split), std::move(grouping)};
    }
    return {std::nullopt, std::move(whole)};
  }

 private:
  std::set<size_t> candidates(const Grouping& grouping) const {
    std::vector<std::vector<const Group*>> touching(program_.buffers.size());
    for (const Group& group : grouping.groups)
      for (const Member& member : group.members)
        for (const std::vector<BufferIndex>& buffers :
             {traffic_.steps[member.step].reads, traffic_.steps[member.step].writes})
          for (BufferIndex buffer : buffers)
            if (touching[buffer].empty() || touching[buffer].back() != &group)
              touching[buffer].push_back(&group);
    std::set<size_t> steps;
    for (const Group& columns : grouping.groups)
      for (const Member& member : columns.members)
        if (!member.is_copy && may_split(*member.nest) && cut(*member.nest) &&
            saves_reading(member, columns, touching))
          steps.insert(member.step);
    return steps;
  }

  static bool may_split(const Nest& nest) {
    return nest.reduces() && nest.kept_values.empty() &&
           std::all_of(nest.parts.begin(), nest.parts.end(),
                       [](const loop::Reduction& part) { return part.op == ops::ReduceOp::sum; });
  }

  // Parts of 16 rows, or of as many as divide their number.
  std::optional<std::vector<Piece>> cut(const Nest& nest) const {
    sym::Context& context = *nest.kernel->context;
    std::vector<size_t> order = memory_order(nest, facts_);
    Expr extent = nest.reduced[order.back()].extent;
    int64_t best = 0;
    for (int64_t chunk : chunks_of(extent, facts_))
      if (chunk <= limits_.chunk) best = std::max(best, chunk);
    std::optional<Expr> parts = sym::exact_div(extent, context.constant(std::max<int64_t>(best, 1)), facts_);
    if (best < limits_.min_chunk || !parts) return std::nullopt;
    std::vector<Piece> pieces;
    for (const AxisInfo& axis : nest.reduced) pieces.push_back({axis.extent, context.constant(1)});
    pieces[order.back()] = {*parts, context.constant(best)};
    int64_t steps = 1;
    for (const Piece& piece : pieces) steps *= hinted(piece.parts, facts_);
    if (steps < limits_.min_steps) return std::nullopt;
    return pieces;
  }

  // Some other group folds rows of the same domain, and has at hand what the column sum would read once more.
  bool saves_reading(const Member& member, const Group& columns,
                     const std::vector<std::vector<const Group*>>& touching) const {
    Expr domain = axis::extent_product(*program_.context, member.nest->all_axes());
    if (hinted(domain, facts_) < limits_.min_elements) return false;
    for (const Member& reader : columns.members)
      for (BufferIndex buffer : traffic_.steps[reader.step].reads)
        if (sym::provably_equal(program_.buffers[buffer].elements, domain, facts_))
          for (const Group* rows : touching[buffer])
            if (rows != &columns && folds_rows_of(*member.nest, *rows)) return true;
    return false;
  }

  bool folds_rows_of(const Nest& sum, const Group& rows) const {
    sym::Context& context = *program_.context;
    std::vector<AxisInfo> outer, inner;
    for (const RootAxis& axis : rows.axes) (axis.inner ? inner : outer).push_back({axis.symbol, axis.extent});
    auto equal = [&](const std::vector<AxisInfo>& a, const std::vector<AxisInfo>& b) {
      return sym::provably_equal(axis::extent_product(context, a), axis::extent_product(context, b), facts_);
    };
    return !inner.empty() && equal(outer, sum.reduced) && equal(inner, sum.kept);
  }

  static std::set<std::string> names_of_column_sums(const Grouping& grouping) {
    std::set<std::string> names;
    for (const Group& group : grouping.groups)
      for (const Member& member : group.members)
        if (member.sums_columns) names.insert(member.nest->kernel->name);
    return names;
  }

  const loop::Program& program_;
  ColumnLimits limits_;
  Traffic traffic_;
  sym::Facts facts_;
};

}  // namespace

GroupedColumns split_columns(const loop::Program& program, const ColumnLimits& limits) {
  return Columns(program, limits).run();
}

}  // namespace kerf::sched
