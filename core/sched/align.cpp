#include "sched/align.h"

#include <algorithm>

#include "axis/cut.h"
#include "sym/batch.h"
#include "sym/simplify.h"

namespace kerf::sched {

using axis::AxisInfo;
using axis::Digit;
using sym::Expr;

namespace {

std::vector<AxisInfo> infos_of(const std::vector<RootAxis>& axes) {
  std::vector<AxisInfo> infos;
  for (const RootAxis& axis : axes) infos.push_back({axis.symbol, axis.extent});
  return infos;
}

std::vector<AxisInfo> infos_of(const std::vector<RootAxis>& axes, bool inner) {
  std::vector<AxisInfo> infos;
  for (const RootAxis& axis : axes)
    if (axis.inner == inner) infos.push_back({axis.symbol, axis.extent});
  return infos;
}

Expr digits_product(const std::vector<Digit>& digits, std::span<const AxisInfo> axes, sym::Context& context) {
  Expr product = context.constant(1);
  for (const Digit& digit : digits) product = product * axes[digit.axis].extent;
  return product;
}

bool mentions_any(Expr expr, const std::vector<AxisInfo>& axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](const AxisInfo& a) { return sym::mentions(expr, a.symbol); });
}

Expr fresh_root(sym::Context& context, uint32_t& counter) {
  return context.symbol("a" + std::to_string(counter++), sym::SymbolKind::axis);
}

// index(axes) == position(root axes) solved for the axes.
struct Solution {
  std::vector<sym::Substitution> map;
  Expr count;  // different values of either side
};

std::optional<Solution> solve(Expr index, std::span<const AxisInfo> axes, Expr position,
                              std::span<const AxisInfo> root, const sym::Facts& facts) {
  sym::Context& context = position.context();
  auto digits = axis::dense_digits(index, axes, facts);
  auto root_digits = axis::dense_digits(position, root, facts);
  if (digits.has_value() != root_digits.has_value()) return std::nullopt;
  if (digits) {
    Expr count = digits_product(*digits, axes, context);
    if (!sym::provably_equal(count, digits_product(*root_digits, root, context), facts)) return std::nullopt;
    return Solution{axis::match_digits(*digits, axes, *root_digits, root, facts), count};
  }
  // Both skip elements: run by run.
  auto runs = axis::digit_runs(index, axes, facts), root_runs = axis::digit_runs(position, root, facts);
  if (!runs || !root_runs || runs->runs.size() != root_runs->runs.size() ||
      !sym::provably_equal(runs->offset, root_runs->offset, facts))
    return std::nullopt;
  Solution solution{{}, context.constant(1)};
  for (size_t k = 0; k < runs->runs.size(); ++k) {
    const axis::DigitRun &run = runs->runs[k], &other = root_runs->runs[k];
    if (!sym::provably_equal(run.stride, other.stride, facts) ||
        !sym::provably_equal(run.count, other.count, facts))
      return std::nullopt;
    for (sym::Substitution& s : axis::match_digits(run.digits, axes, other.digits, root, facts))
      solution.map.push_back(std::move(s));
    solution.count = sym::mul(solution.count, run.count);
  }
  return solution;
}

// One alignment in progress: the nest's axes fall into solved ones (digits of the shared index) and free ones.
struct Solver {
  Alignment result;
  const Nest& nest;
  sym::Context& context;
  std::vector<AxisInfo> free_kept, free_reduced;

  Expr solved(Expr axis) const {
    for (const sym::Substitution& s : result.member.map)
      if (s.from == axis) return s.to;
    return Expr();
  }

  // Cuts the root axes so that kept and reduced axes of the nest lie on different ones.
  void cut_roots() {
    std::vector<axis::CutSet> sets;
    for (const sym::Substitution& s : result.member.map)
      for (axis::CutSet& set : axis::cut_sets(s.to, 1, false)) sets.push_back(std::move(set));
    std::vector<RootAxis> axes;
    for (const RootAxis& root : result.axes) {
      std::vector<axis::CutSet> own;
      for (const axis::CutSet& set : sets)
        if (set.axis == root.symbol) own.push_back(set);
      auto chain = axis::choose_chain(root.extent, {}, own, {}, result.facts, {});
      if (own.empty() || chain->empty()) {
        axes.push_back(root);
        continue;
      }
      axis::Cut cut = axis::cut_range(root.extent, *chain, result.facts,
                                      [&] { return fresh_root(context, result.next_symbol); });
      for (size_t i = 0; i < cut.symbols.size(); ++i) {
        axes.push_back({cut.symbols[i], cut.extents[i], root.inner, root.summed});
        result.facts.set_extent(cut.symbols[i], cut.extents[i]);
      }
      result.group_change.push_back({root.symbol, cut.value});
    }
    result.axes = std::move(axes);
    for (sym::Substitution& s : result.member.map)
      s.to = sym::simplify(sym::substitute(s.to, result.group_change), result.facts);
  }

  bool runs_over(const std::vector<AxisInfo>& axes, const RootAxis& root) const {
    return std::any_of(axes.begin(), axes.end(), [&](const AxisInfo& axis) {
      Expr value = solved(axis.symbol);
      return value.valid() && sym::mentions(value, root.symbol);
    });
  }

  // Root axes of the reduced axes become inner. False if some root axis serves both.
  bool split_rows() {
    cut_roots();
    for (RootAxis& root : result.axes) {
      root.inner = runs_over(nest.reduced, root);
      if (root.inner && runs_over(nest.kept, root)) return false;
    }
    return true;
  }

  // The reduced axes lie on outer root axes of their own: the same for all members that sum columns.
  bool split_columns() {
    bool any_summed =
        std::any_of(result.axes.begin(), result.axes.end(), [](const RootAxis& a) { return a.summed; });
    cut_roots();
    for (RootAxis& root : result.axes) {
      bool summed = runs_over(nest.reduced, root);
      if (summed && (root.inner || runs_over(nest.kept, root))) return false;
      if (any_summed && summed != root.summed) return false;
      root.summed = summed;
    }
    return true;
  }

  // New inner axes for the nest's free axes.
  void add_inner(const std::vector<AxisInfo>& axes) {
    for (const AxisInfo& axis : axes) {
      Expr symbol = fresh_root(context, result.next_symbol);
      result.axes.push_back({symbol, axis.extent, true});
      result.facts.set_extent(symbol, axis.extent);
      result.member.map.push_back({axis.symbol, symbol});
    }
    result.broadcasts = true;
  }

  // The nest's free axes walk the group's inner axes in row-major order.
  bool unify_inner(const std::vector<AxisInfo>& axes) {
    std::vector<AxisInfo> inner = infos_of(result.axes, true);
    Expr wanted = axis::extent_product(context, axes);
    if (!sym::provably_equal(wanted, axis::extent_product(context, inner), result.facts)) return false;
    auto digits = axis::dense_digits(axis::row_major(context, axes), axes, result.facts);
    if (!digits) return false;
    for (const sym::Substitution& s :
         axis::invert(*digits, axes, axis::row_major(context, inner), result.facts))
      result.member.map.push_back(s);
    for (const AxisInfo& axis : axes)
      if (!solved(axis.symbol).valid()) result.member.map.push_back({axis.symbol, context.constant(0)});
    return true;
  }
};

// All axes of the nest are known at the point where its value is read.
bool align_copy(Solver& solver) {
  if (solver.nest.reduces() || !solver.free_kept.empty()) return false;
  std::vector<AxisInfo> inner = infos_of(solver.result.axes, true);
  solver.result.member.is_full =
      std::any_of(solver.result.member.map.begin(), solver.result.member.map.end(),
                  [&](const sym::Substitution& s) { return mentions_any(s.to, inner); });
  return true;
}

bool align_flexible(Solver& solver) {
  if (!solver.nest.reduces()) {
    if (!solver.free_kept.empty()) solver.add_inner(solver.free_kept);
    solver.result.member.is_full = !solver.free_kept.empty();
    return true;
  }
  if (!solver.free_kept.empty()) return false;
  bool some_solved = false;
  for (const AxisInfo& axis : solver.nest.reduced)
    some_solved =
        some_solved || (solver.solved(axis.symbol).valid() && !solver.solved(axis.symbol).is_constant());
  if (some_solved && !solver.free_reduced.empty()) return false;
  if (!solver.split_rows()) return false;
  if (!solver.free_reduced.empty()) solver.add_inner(solver.free_reduced);
  solver.result.member.is_full = true;
  return true;
}

// At most this many additions round one after the other (codegen/llvm/reduce.cpp).
constexpr int64_t kChain = 16;

bool is_short_sum(const Nest& nest, sym::Context& context) {
  if (!nest.reduces() || !nest.kept_values.empty()) return false;
  for (const loop::Reduction& part : nest.parts)
    if (part.op != ops::ReduceOp::sum) return false;
  Expr rows = axis::extent_product(context, nest.reduced);
  return rows.is_constant() && rows.constant() <= kChain && rows.constant() >= 2;
}

// A short sum over rows of the group, element by element of the rows.
bool align_columns(Solver& solver) {
  const Nest& nest = solver.nest;
  if (!solver.free_kept.empty() || !solver.free_reduced.empty()) return false;
  Expr points = axis::extent_product(solver.context, nest.all_axes());
  Expr domain = axis::extent_product(solver.context, infos_of(solver.result.axes));
  if (!sym::provably_equal(points, domain, solver.result.facts)) return false;
  if (!solver.split_columns()) return false;
  solver.result.member.is_full = solver.result.member.sums_columns = true;
  return true;
}

// The group already has inner axes: the nest must keep all outer axes and use all inner axes or none.
bool align_rows(Solver& solver) {
  const Nest& nest = solver.nest;
  std::vector<AxisInfo> outer = infos_of(solver.result.axes, false),
                        inner = infos_of(solver.result.axes, true);
  if (nest.reduces() && !solver.free_kept.empty()) return false;
  const std::vector<AxisInfo>& free = nest.reduces() ? solver.free_reduced : solver.free_kept;
  if (!free.empty()) {
    // A free axis may only take the place of inner axes that nothing solved uses yet.
    for (const sym::Substitution& s : solver.result.member.map)
      if (mentions_any(s.to, inner)) return false;
    if (!solver.unify_inner(free)) return false;
  }
  bool any_inner = false;
  for (const AxisInfo& axis : nest.kept) {
    Expr value = solver.solved(axis.symbol);
    if (mentions_any(value, inner)) {
      any_inner = true;
      if (nest.reduces()) return false;
    }
  }
  for (const AxisInfo& axis : nest.reduced)
    if (mentions_any(solver.solved(axis.symbol), outer)) return false;
  solver.result.member.is_full = nest.reduces() || any_inner;
  const sym::Facts& facts = solver.result.facts;
  Expr outer_count = axis::extent_product(solver.context, outer),
       inner_count = axis::extent_product(solver.context, inner);
  Expr kept_count = axis::extent_product(solver.context, nest.kept);
  if (!nest.reduces()) {
    Expr expected = any_inner ? outer_count * inner_count : outer_count;
    return sym::provably_equal(kept_count, expected, facts);
  }
  return sym::provably_equal(kept_count, outer_count, facts) &&
         sym::provably_equal(axis::extent_product(solver.context, nest.reduced), inner_count, facts);
}

}  // namespace

bool Group::is_flexible() const {
  return std::none_of(axes.begin(), axes.end(), [](const RootAxis& axis) { return axis.inner; }) &&
         std::none_of(members.begin(), members.end(), [](const Member& m) { return m.nest->reduces(); });
}

std::vector<AxisInfo> Group::axis_infos() const { return infos_of(axes); }

std::optional<Alignment> align(const Group& group, const Nest& nest, Expr position, Expr index,
                               bool is_copy) {
  sym::Context& context = position.context();
  std::vector<AxisInfo> all = nest.all_axes(), root = infos_of(group.axes);
  const sym::Facts& facts = group.facts;  // enough: what is proved or simplified mentions no axis of the nest
  std::optional<Solution> solution = solve(index, all, position, root, facts);
  if (!solution) return std::nullopt;
  const Expr count = solution->count;
  Solver solver{{}, nest, context, {}, {}};
  solver.result.axes = group.axes;
  solver.result.facts = facts;
  solver.result.next_symbol = group.next_symbol;
  solver.result.member.nest = &nest;
  solver.result.member.map = std::move(solution->map);
  auto sort_free = [&](const std::vector<AxisInfo>& axes, std::vector<AxisInfo>& free) {
    for (const AxisInfo& axis : axes) {
      if (solver.solved(axis.symbol).valid()) continue;
      if (axis.extent.is_constant(1)) {
        solver.result.member.map.push_back({axis.symbol, context.constant(0)});
      } else {
        free.push_back(axis);
      }
    }
  };
  sort_free(nest.kept, solver.free_kept);
  sort_free(nest.reduced, solver.free_reduced);

  if (is_copy) {
    if (!align_copy(solver)) return std::nullopt;
  } else if (group.is_flexible()) {
    // Its members run over all root axes, so the shared element must as well.
    if (!sym::provably_equal(count, axis::extent_product(context, root), facts)) return std::nullopt;
    if (!align_flexible(solver)) return std::nullopt;
  } else {
    if (!is_short_sum(nest, context)) {
      if (!align_rows(solver)) return std::nullopt;
    } else if (Solver rows = solver; align_rows(rows)) {
      return std::move(rows.result);
    } else if (!align_columns(solver)) {
      return std::nullopt;
    }
  }
  return std::move(solver.result);
}

Group seed_group(const Nest& nest, size_t step, const sym::Facts& size_facts) {
  Group group;
  group.facts = size_facts;
  sym::Context& context = *nest.kernel->context;
  Member member;
  member.step = step;
  member.nest = &nest;
  member.is_full = nest.reduces();
  auto add = [&](const std::vector<AxisInfo>& axes, bool inner) {
    for (const AxisInfo& axis : axes) {
      Expr symbol = fresh_root(context, group.next_symbol);
      group.axes.push_back({symbol, axis.extent, inner});
      group.facts.set_extent(symbol, axis.extent);
      member.map.push_back({axis.symbol, symbol});
    }
  };
  add(nest.kept, false);
  add(nest.reduced, true);
  place_accesses(member, group.facts);
  group.members.push_back(std::move(member));
  return group;
}

Member& accept(Group& group, Alignment alignment, size_t step) {
  bool was_flexible = group.is_flexible();
  bool has_inner = std::any_of(alignment.axes.begin(), alignment.axes.end(),
                               [](const RootAxis& axis) { return axis.inner; });
  group.axes = std::move(alignment.axes);
  group.facts = std::move(alignment.facts);
  group.next_symbol = alignment.next_symbol;
  const bool moved = !alignment.group_change.empty();
  for (Member& member : group.members) {
    if (moved) {
      for (sym::Substitution& s : member.map)
        s.to = sym::simplify(sym::substitute(s.to, alignment.group_change), group.facts);
      place_accesses(member, group.facts);
    }
    // A member that ran over all axes of a flexible group runs over the inner ones too, once there are some. (A fold
    // over extents of 1 makes none.)
    if (was_flexible && !alignment.broadcasts && has_inner) member.is_full = true;
  }
  alignment.member.step = step;
  auto at = std::upper_bound(group.members.begin(), group.members.end(), step,
                             [](size_t s, const Member& m) { return s < m.step; });
  return *group.members.insert(at, std::move(alignment.member));
}

void place_accesses(Member& member, const sym::Facts& facts) {
  std::vector<Expr> indices;
  for (const NestLoad& load : member.nest->loads) indices.push_back(load.index);
  for (const loop::Store& store : member.nest->stores) indices.push_back(store.index);
  sym::substitute_all(indices, member.map);
  sym::simplify_all(indices, facts);
  auto stores = indices.begin() + static_cast<std::ptrdiff_t>(member.nest->loads.size());
  member.loads.assign(indices.begin(), stores);
  member.stores.assign(stores, indices.end());
}

Expr on_root(const Member& member, Expr index, const sym::Facts& facts) {
  return sym::simplify(sym::substitute(index, member.map), facts);
}

}  // namespace kerf::sched
