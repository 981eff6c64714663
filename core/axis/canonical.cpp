#include "axis/canonical.h"

#include <algorithm>

#include "axis/linear.h"
#include "sym/simplify.h"

namespace kerf::axis {

using sym::Expr;

namespace {

// The state while axes are replaced: accesses and the map are always over the current axes.
struct State {
  std::vector<DomainAxis> axes;
  std::vector<DomainAccess> accesses;
  std::vector<sym::Substitution> map;
  std::vector<DomainGuard> guards;
  sym::Facts facts;

  void substitute(std::span<const sym::Substitution> change) {
    for (DomainAccess& access : accesses) access.index = rewrite(access.index, change);
    for (sym::Substitution& entry : map) entry.to = rewrite(entry.to, change);
    for (DomainGuard& guard : guards) guard.value = rewrite(guard.value, change);
  }
  Expr rewrite(Expr e, std::span<const sym::Substitution> change) const {
    return sym::simplify(sym::substitute(e, change), facts);
  }
};

// Cuts ranges until no cut separates anything new; a cut can uncover terms that another range's cut hid.
void cut_all(State& state, const FreshSymbol& fresh, bool allow_guards) {
  constexpr int kMaxRounds = 4;
  for (int round = 0; round < kMaxRounds; ++round) {
    std::vector<CutPoint> points;
    for (const DomainAccess& access : state.accesses) collect_cut_points(access.index, access.weight, points);
    if (points.empty()) return;
    bool changed = false;
    std::vector<DomainAxis> next;
    std::vector<sym::Substitution> change;
    for (const DomainAxis& axis : state.axes) {
      std::vector<CutPoint> own;
      for (const CutPoint& p : points)
        if (p.axis == axis.symbol) own.push_back(p);
      std::optional<Cut> cut =
          own.empty() ? std::nullopt : cut_range(axis.extent, own, state.facts, allow_guards, fresh);
      if (!cut) {
        next.push_back(axis);
        continue;
      }
      for (size_t i = 0; i < cut->symbols.size(); ++i) {
        next.push_back({cut->symbols[i], cut->extents[i], axis.binding, axis.keep_unused});
        state.facts.set_extent(cut->symbols[i], cut->extents[i]);
      }
      change.push_back({axis.symbol, cut->value});
      if (cut->guarded) state.guards.push_back({cut->value, axis.extent});
      changed = true;
    }
    if (!changed) return;
    state.axes = std::move(next);
    state.substitute(change);
  }
}

// Whether `outer` followed by `inner` is walked as one range by this expression.
bool walks_as_one(Expr expr, const DomainAxis& outer, const DomainAxis& inner) {
  if (!sym::mentions(expr, outer.symbol) && !sym::mentions(expr, inner.symbol)) return true;
  std::optional<Expr> a = stride_over(expr, outer.symbol);
  std::optional<Expr> b = stride_over(expr, inner.symbol);
  return a && b && *a == inner.extent * *b;
}

void merge_all(State& state, const FreshSymbol& fresh) {
  auto mergeable = [&](const DomainAxis& outer, const DomainAxis& inner) {
    if (outer.binding != inner.binding || outer.keep_unused != inner.keep_unused) return false;
    if (inner.extent.is_constant(0)) return false;  // no digit of a position
    for (const DomainAccess& access : state.accesses)
      if (!walks_as_one(access.index, outer, inner)) return false;
    for (const DomainGuard& guard : state.guards)
      if (!walks_as_one(guard.value, outer, inner)) return false;
    return true;
  };
  for (bool again = true; again;) {
    again = false;
    for (size_t o = 0; o < state.axes.size() && !again; ++o) {
      for (size_t i = 0; i < state.axes.size() && !again; ++i) {
        if (o == i || !mergeable(state.axes[o], state.axes[i])) continue;
        // Two axes that no access uses would merge either way round: keep their order.
        if (o > i && mergeable(state.axes[i], state.axes[o])) continue;
        DomainAxis outer = state.axes[o], inner = state.axes[i];
        DomainAxis merged{fresh(), outer.extent * inner.extent, outer.binding, outer.keep_unused};
        state.facts.set_extent(merged.symbol, merged.extent);
        // The accesses are affine in both with matching strides, so p // n and p % n recombine to p.
        sym::Substitution change[] = {{outer.symbol, sym::floor_div(merged.symbol, inner.extent)},
                                      {inner.symbol, sym::mod(merged.symbol, inner.extent)}};
        state.substitute(change);
        state.axes[std::min(o, i)] = merged;
        state.axes.erase(state.axes.begin() + static_cast<std::ptrdiff_t>(std::max(o, i)));
        again = true;
      }
    }
  }
}

void drop_trivial(State& state) {
  std::vector<DomainAxis> kept;
  std::vector<sym::Substitution> change;
  for (const DomainAxis& axis : state.axes) {
    // Facts of an empty axis simplify it out of every index; a domain without it would have a point.
    bool used = axis.keep_unused || axis.extent.is_constant(0);
    for (const DomainAccess& access : state.accesses) used = used || sym::mentions(access.index, axis.symbol);
    if (axis.extent.is_constant(1) || !used) {
      change.push_back({axis.symbol, axis.extent.context().constant(0)});
    } else {
      kept.push_back(axis);
    }
  }
  state.axes = std::move(kept);
  if (!change.empty()) state.substitute(change);
}

int64_t bytes_at_stride_one(const State& state, const DomainAxis& axis) {
  int64_t bytes = 0;
  for (const DomainAccess& access : state.accesses) {
    std::optional<Expr> stride = stride_over(access.index, axis.symbol);
    if (stride && stride->is_constant(1)) bytes += access.is_store ? 2 * access.weight : access.weight;
  }
  return bytes;
}

// Strides of the heaviest access that walks both axes decide which of the two is outer; unknown keeps the order.
bool is_outer(const State& state, const DomainAxis& a, const DomainAxis& b) {
  int64_t a_first = 0, b_first = 0;
  for (const DomainAccess& access : state.accesses) {
    std::optional<Expr> sa = stride_over(access.index, a.symbol), sb = stride_over(access.index, b.symbol);
    if (!sa || !sb || sa->is_constant(0) || sb->is_constant(0)) continue;
    int64_t weight = access.is_store ? 2 * access.weight : access.weight;
    if (sym::provably_less(*sb, *sa, state.facts)) a_first += weight;
    if (sym::provably_less(*sa, *sb, state.facts)) b_first += weight;
  }
  return a_first > b_first;
}

// Orders the axes of each binding; insertion sort, since `is_outer` need not be transitive.
void order_axes(State& state) {
  std::vector<DomainAxis> ordered;
  std::vector<uint32_t> bindings;
  for (const DomainAxis& axis : state.axes)
    if (std::find(bindings.begin(), bindings.end(), axis.binding) == bindings.end())
      bindings.push_back(axis.binding);
  for (uint32_t binding : bindings) {
    std::vector<DomainAxis> group;
    for (const DomainAxis& axis : state.axes) {
      if (axis.binding != binding) continue;
      size_t at = group.size();
      while (at > 0 && is_outer(state, axis, group[at - 1])) --at;
      group.insert(group.begin() + static_cast<std::ptrdiff_t>(at), axis);
    }
    size_t innermost = group.size();
    int64_t best = 0;
    for (size_t k = 0; k < group.size(); ++k) {
      int64_t bytes = bytes_at_stride_one(state, group[k]);
      if (bytes >= best && bytes > 0) best = bytes, innermost = k;
    }
    if (innermost < group.size())
      std::rotate(group.begin() + static_cast<std::ptrdiff_t>(innermost),
                  group.begin() + static_cast<std::ptrdiff_t>(innermost) + 1, group.end());
    ordered.insert(ordered.end(), group.begin(), group.end());
  }
  state.axes = std::move(ordered);
}

}  // namespace

Canonical canonicalize(std::span<const DomainAxis> axes, std::span<const DomainAccess> accesses,
                       sym::Facts facts, const FreshSymbol& fresh, const CanonicalOptions& options) {
  State state{{axes.begin(), axes.end()}, {accesses.begin(), accesses.end()}, {}, {}, std::move(facts)};
  for (const DomainAxis& axis : axes) {
    state.map.push_back({axis.symbol, axis.symbol});
    state.facts.set_extent(axis.symbol, axis.extent);
  }
  for (DomainAccess& access : state.accesses) access.index = sym::simplify(access.index, state.facts);
  drop_trivial(state);
  cut_all(state, fresh, options.allow_guards);
  merge_all(state, fresh);
  drop_trivial(state);
  order_axes(state);

  Canonical result;
  std::vector<AxisInfo> infos;
  for (const DomainAxis& axis : state.axes) infos.push_back({axis.symbol, axis.extent});
  for (size_t k = 0; k < state.accesses.size(); ++k)
    if (!linear_form(state.accesses[k].index, infos)) result.derived.push_back(k);
  result.axes = std::move(state.axes);
  result.map = std::move(state.map);
  result.guards = std::move(state.guards);
  return result;
}

}  // namespace kerf::axis
