#include "axis/cut.h"

#include <algorithm>

#include "sym/simplify.h"

namespace kerf::axis {

using sym::Expr;
using sym::Kind;

namespace {

bool is_axis(Expr e) { return e.is_symbol() && e.symbol().kind == sym::SymbolKind::axis; }

void collect(Expr expr, int64_t weight, std::vector<CutPoint>& out) {
  if (expr.kind() == Kind::floor_div && is_axis(expr.operand(0))) {
    out.push_back({expr.operand(0), expr.operand(1), weight});
    return;
  }
  if (expr.kind() == Kind::mod) {
    Expr base = expr.operand(0);
    if (is_axis(base)) {
      out.push_back({base, expr.operand(1), weight});
      return;
    }
    if (base.kind() == Kind::floor_div && is_axis(base.operand(0))) {
      out.push_back({base.operand(0), base.operand(1), weight});
      out.push_back({base.operand(0), base.operand(1) * expr.operand(1), weight});
      return;
    }
  }
  for (size_t i = 0; i < expr.size(); ++i) collect(expr.operand(i), weight, out);
}

bool mentions_axis(Expr e) {
  if (is_axis(e)) return true;
  for (size_t i = 0; i < e.size(); ++i)
    if (mentions_axis(e.operand(i))) return true;
  return false;
}

// Inserts `point` where it divides what comes after and is divided by what comes before; false if there is no such place.
bool insert_into_chain(std::vector<Expr>& chain, Expr point, const sym::Facts& facts) {
  for (size_t at = 0; at <= chain.size(); ++at) {
    bool below = at == 0 || sym::provably_divides(chain[at - 1], point, facts);
    bool above = at == chain.size() || sym::provably_divides(point, chain[at], facts);
    if (below && above) {
      chain.insert(chain.begin() + static_cast<std::ptrdiff_t>(at), point);
      return true;
    }
  }
  return false;
}

}  // namespace

void collect_cut_points(Expr expr, int64_t weight, std::vector<CutPoint>& out) {
  size_t first = out.size();
  collect(expr, weight, out);
  // A point that varies with another axis is no cut.
  out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
                           [](const CutPoint& p) { return mentions_axis(p.point); }),
            out.end());
}

std::optional<Cut> cut_range(Expr extent, std::span<const CutPoint> points, const sym::Facts& facts,
                             bool allow_guard, const FreshSymbol& fresh) {
  std::vector<CutPoint> wanted;
  for (const CutPoint& p : points) {
    auto same =
        std::find_if(wanted.begin(), wanted.end(), [&](const CutPoint& w) { return w.point == p.point; });
    if (same == wanted.end()) {
      wanted.push_back(p);
    } else {
      same->weight += p.weight;
    }
  }
  std::stable_sort(wanted.begin(), wanted.end(), [](const CutPoint& a, const CutPoint& b) {
    if (a.weight != b.weight) return a.weight > b.weight;
    return sym::compare(a.point, b.point) < 0;
  });
  std::vector<Expr> chain;
  for (const CutPoint& p : wanted) {
    if (p.point.is_constant(1) || sym::provably_less_equal(extent, p.point, facts)) continue;
    if (p.point.is_constant() && p.point.constant() <= 0) continue;
    if (!allow_guard && !sym::provably_divides(p.point, extent, facts)) continue;
    insert_into_chain(chain, p.point, facts);
  }
  if (chain.empty()) return std::nullopt;

  Cut cut;
  sym::Context& context = extent.context();
  std::optional<Expr> top = sym::exact_div(extent, chain.back(), facts);
  cut.guarded = !top;
  cut.extents.push_back(top ? *top : sym::simplify(sym::ceil_div(extent, chain.back()), facts));
  for (size_t i = chain.size(); i-- > 0;) {
    Expr below = i == 0 ? context.constant(1) : chain[i - 1];
    std::optional<Expr> digits = sym::exact_div(chain[i], below, facts);
    CHECK(digits, "chain without exact quotient");
    cut.extents.push_back(*digits);
  }
  cut.value = context.constant(0);
  for (size_t i = 0; i < cut.extents.size(); ++i) {
    cut.symbols.push_back(fresh());
    Expr stride = i + 1 == cut.extents.size() ? context.constant(1) : chain[chain.size() - 1 - i];
    cut.value = cut.value + cut.symbols.back() * stride;
  }
  return cut;
}

}  // namespace kerf::axis
