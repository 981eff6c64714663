#include "axis/merge.h"

#include <algorithm>
#include <unordered_map>

#include "axis/linear.h"
#include "sym/simplify.h"

namespace kerf::axis {

using sym::Expr;
using sym::Kind;

namespace {

// Whether `outer` followed by `inner` of `extent` is walked as one range: the linear parts have matching strides, and every
// // or % term sees both through one recombined coordinate.
bool walks_as_one(Expr expr, Expr outer, Expr inner, Expr extent) {
  if (!sym::mentions(expr, outer) && !sym::mentions(expr, inner)) return true;
  Expr linear = expr.context().constant(0);
  for (const sym::Term& term : sym::terms_of(expr)) {
    if (!sym::mentions(term.rest, outer) && !sym::mentions(term.rest, inner)) continue;
    if (stride_over(term.rest, outer) && stride_over(term.rest, inner)) {
      linear = linear + term.rest * term.coefficient;
      continue;
    }
    bool product = term.rest.kind() == Kind::mul;
    for (size_t f = 0; f < (product ? term.rest.size() : 1); ++f) {
      Expr factor = product ? term.rest.operand(f) : term.rest;
      if (!sym::mentions(factor, outer) && !sym::mentions(factor, inner)) continue;
      if (factor.is_symbol() || factor.kind() == Kind::add || factor.kind() == Kind::mul) return false;
      for (size_t i = 0; i < factor.size(); ++i)
        if (!walks_as_one(factor.operand(i), outer, inner, extent)) return false;
    }
  }
  std::optional<Expr> a = stride_over(linear, outer), b = stride_over(linear, inner);
  return a && b && *a == extent * *b;
}

AxisPoints* points_of(Axes& state, Expr axis) {
  for (AxisPoints& points : state.points)
    if (points.axis == axis) return &points;
  return nullptr;
}

bool may_merge(Axes& state, size_t o, size_t i) {
  const DomainAxis &outer = state.axes[o], &inner = state.axes[i];
  if (outer.binding != inner.binding || outer.keep_unused != inner.keep_unused) return false;
  if (inner.extent.is_constant(0)) return false;  // no digit of a position
  // Intervals of the outer axis times all of the inner one are intervals of both; intervals of the inner one are not.
  if (points_of(state, inner.symbol)) return false;
  for (const StrideRow& row : state.rows) {
    if (row.strides[o].is_constant(0) && row.strides[i].is_constant(0)) continue;
    if (!(row.strides[o] == inner.extent * row.strides[i])) return false;
  }
  auto as_one = [&](Expr e) { return walks_as_one(e, outer.symbol, inner.symbol, inner.extent); };
  return std::all_of(state.opaque.begin(), state.opaque.end(),
                     [&](const OpaqueIndex& x) { return as_one(x.index); }) &&
         std::all_of(state.masks.begin(), state.masks.end(),
                     [&](const DomainMask& m) { return as_one(m.value); }) &&
         std::all_of(state.guards.begin(), state.guards.end(),
                     [&](const DomainGuard& g) { return as_one(g.value); });
}

void substitute(Axes& state, std::span<const sym::Substitution> change) {
  auto rewrite = [&](Expr& e) { e = sym::simplify(sym::substitute(e, change), state.facts); };
  for (OpaqueIndex& opaque : state.opaque) rewrite(opaque.index);
  for (DomainMask& mask : state.masks) rewrite(mask.value);
  for (DomainGuard& guard : state.guards) rewrite(guard.value);
  for (sym::Substitution& entry : state.map) rewrite(entry.to);
}

struct RowHash {
  size_t operator()(const std::vector<Expr>& strides) const {
    uint64_t hash = strides.size();
    for (Expr stride : strides) hash = hash * 0x9e3779b97f4a7c15 + stride.hash();
    return hash;
  }
};

// Rows that became equal are one; in the order of the first of each.
void join_rows(std::vector<StrideRow>& rows) {
  std::vector<StrideRow> joined;
  std::unordered_map<std::vector<Expr>, size_t, RowHash> known;
  for (StrideRow& row : rows) {
    auto [at, is_new] = known.try_emplace(row.strides, joined.size());
    if (is_new) {
      joined.push_back(std::move(row));
    } else {
      joined[at->second].loaded += row.loaded, joined[at->second].stored += row.stored;
    }
  }
  rows = std::move(joined);
}

bool is_less(Expr a, Expr b, const sym::Facts& facts) {
  if (a.is_constant() && b.is_constant()) return a.constant() < b.constant();
  return sym::provably_less(a, b, facts);
}

void merge(Axes& state, size_t o, size_t i, const FreshSymbol& fresh) {
  DomainAxis outer = state.axes[o], inner = state.axes[i];
  DomainAxis merged{fresh(), outer.extent * inner.extent, outer.binding, outer.keep_unused};
  state.facts.set_extent(merged.symbol, merged.extent);
  if (AxisPoints* points = points_of(state, outer.symbol)) {
    points->axis = merged.symbol;
    for (Expr& point : points->points) point = point * inner.extent;
  }
  // Strides match, so p // n and p % n recombine to p.
  sym::Substitution change[] = {{outer.symbol, sym::floor_div(merged.symbol, inner.extent)},
                                {inner.symbol, sym::mod(merged.symbol, inner.extent)}};
  substitute(state, change);
  auto at = static_cast<std::ptrdiff_t>(std::max(o, i));
  for (StrideRow& row : state.rows) {
    row.strides[std::min(o, i)] = row.strides[i];
    row.strides.erase(row.strides.begin() + at);
  }
  state.axes[std::min(o, i)] = merged;
  state.axes.erase(state.axes.begin() + at);
  join_rows(state.rows);
}

bool merge_one(Axes& state, const FreshSymbol& fresh) {
  for (size_t o = 0; o < state.axes.size(); ++o) {
    for (size_t i = 0; i < state.axes.size(); ++i) {
      if (o == i || !may_merge(state, o, i)) continue;
      // Two axes that no access uses would merge either way round: keep their order.
      if (o > i && may_merge(state, i, o)) continue;
      merge(state, o, i, fresh);
      return true;
    }
  }
  return false;
}

int64_t bytes_at_stride_one(const Axes& state, size_t axis) {
  int64_t bytes = 0;
  for (const StrideRow& row : state.rows)
    if (row.strides[axis].is_constant(1)) bytes += row.loaded + 2 * row.stored;
  return bytes;
}

// Strides of the heaviest accesses that walk both axes decide which of the two is outer; unknown keeps the order.
bool is_outer(const Axes& state, size_t a, size_t b) {
  int64_t a_first = 0, b_first = 0;
  for (const StrideRow& row : state.rows) {
    Expr sa = row.strides[a], sb = row.strides[b];
    if (sa.is_constant(0) || sb.is_constant(0)) continue;
    int64_t weight = row.loaded + 2 * row.stored;
    if (is_less(sb, sa, state.facts)) a_first += weight;
    if (is_less(sa, sb, state.facts)) b_first += weight;
  }
  return a_first > b_first;
}

// Insertion sort, since `is_outer` need not be transitive; then the axis with most bytes at stride 1 goes innermost.
std::vector<size_t> ordered(const Axes& state, const std::vector<size_t>& axes) {
  std::vector<size_t> order;
  for (size_t axis : axes) {
    size_t at = order.size();
    while (at > 0 && is_outer(state, axis, order[at - 1])) --at;
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), axis);
  }
  size_t innermost = order.size();
  int64_t best = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    int64_t bytes = bytes_at_stride_one(state, order[k]);
    if (bytes >= best && bytes > 0) best = bytes, innermost = k;
  }
  if (innermost < order.size())
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(innermost),
                order.begin() + static_cast<std::ptrdiff_t>(innermost) + 1, order.end());
  return order;
}

void select(Axes& state, const std::vector<size_t>& kept) {
  std::vector<DomainAxis> axes;
  for (size_t k : kept) axes.push_back(state.axes[k]);
  state.axes = std::move(axes);
  for (StrideRow& row : state.rows) {
    std::vector<Expr> strides;
    for (size_t k : kept) strides.push_back(row.strides[k]);
    row.strides = std::move(strides);
  }
}

bool is_used(const Axes& state, size_t k) {
  // Facts of an empty axis simplify it out of every index; a domain without it would have a point.
  const DomainAxis& axis = state.axes[k];
  if (axis.keep_unused || axis.extent.is_constant(0)) return true;
  // An index may be constant in each piece and differ between them.
  for (const AxisPoints& points : state.points)
    if (points.axis == axis.symbol) return true;
  return std::any_of(state.rows.begin(), state.rows.end(),
                     [&](const StrideRow& r) { return !r.strides[k].is_constant(0); }) ||
         std::any_of(state.opaque.begin(), state.opaque.end(),
                     [&](const OpaqueIndex& o) { return sym::mentions(o.index, axis.symbol); }) ||
         std::any_of(state.masks.begin(), state.masks.end(),
                     [&](const DomainMask& m) { return sym::mentions(m.value, axis.symbol); });
}

}  // namespace

void merge_axes(Axes& state, const FreshSymbol& fresh) {
  join_rows(state.rows);
  while (merge_one(state, fresh)) {}
}

void drop_unused(Axes& state) {
  std::vector<size_t> kept;
  std::vector<sym::Substitution> change;
  for (size_t k = 0; k < state.axes.size(); ++k) {
    const DomainAxis& axis = state.axes[k];
    if (axis.extent.is_constant(1) || !is_used(state, k)) {
      change.push_back({axis.symbol, axis.extent.context().constant(0)});
    } else {
      kept.push_back(k);
    }
  }
  if (change.empty()) return;
  select(state, kept);
  substitute(state, change);
}

void order_axes(Axes& state) {
  std::vector<size_t> all;
  std::vector<uint32_t> bindings;
  for (const DomainAxis& axis : state.axes)
    if (std::find(bindings.begin(), bindings.end(), axis.binding) == bindings.end())
      bindings.push_back(axis.binding);
  for (uint32_t binding : bindings) {
    std::vector<size_t> group;
    for (size_t k = 0; k < state.axes.size(); ++k)
      if (state.axes[k].binding == binding) group.push_back(k);
    group = ordered(state, group);
    all.insert(all.end(), group.begin(), group.end());
  }
  select(state, all);
}

}  // namespace kerf::axis
