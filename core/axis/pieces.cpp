#include "axis/pieces.h"

#include <fmt/format.h>

#include <algorithm>

#include "axis/linear.h"
#include "sym/eval.h"
#include "sym/simplify.h"

namespace kerf::axis {

using sym::Expr;
using sym::Kind;

namespace {

// A dividend scale * axis + offset.
Shifted shifted(Expr axis) { return {axis, 1, axis.context().constant(0)}; }

// Where (scale * p + offset) // period changes, for p in [0, extent), all constants.
std::optional<std::vector<Expr>> constant_steps(const Shifted& dividend, int64_t extent, int64_t period,
                                                size_t most) {
  int64_t k = dividend.scale, c = dividend.offset.constant();
  constexpr int64_t kLarge = int64_t{1} << 31;  // products of two stay in range
  if (k == 0 || std::abs(k) > kLarge || std::abs(c) > kLarge || extent > kLarge || period <= 0 || extent <= 0)
    return std::nullopt;
  int64_t first = sym::floor_div_int(c, period), last = sym::floor_div_int(c + k * (extent - 1), period);
  if (static_cast<uint64_t>(std::abs(last - first)) > most) return std::nullopt;
  std::vector<Expr> points;
  sym::Context& context = dividend.axis.context();
  if (k > 0)  // the first p with k*p + c >= q*period
    for (int64_t q = first + 1; q <= last; ++q)
      points.push_back(context.constant(sym::floor_div_int(q * period - c + k - 1, k)));
  else  // the first p with k*p + c < (q + 1)*period
    for (int64_t q = first - 1; q >= last; --q)
      points.push_back(context.constant(sym::floor_div_int(c - (q + 1) * period, -k) + 1));
  // A scale beyond the period may step over several quotients at once.
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

// The one step of +-p + c over a period that only facts know.
std::optional<std::vector<Expr>> symbolic_step(const Shifted& dividend, Expr extent, Expr period,
                                               const sym::Facts& facts) {
  Expr c = dividend.offset, zero = c.context().constant(0);
  if (!sym::provably_less_equal(zero, c, facts) || !sym::provably_less_equal(c, period, facts))
    return std::nullopt;
  Expr point;
  if (dividend.scale == 1 && sym::provably_less_equal(c + extent, period * 2, facts)) point = period - c;
  if (dividend.scale == -1 && sym::provably_less(c, period, facts) &&
      sym::provably_less(extent - c - 2, period, facts))
    point = c + 1;
  if (!point.valid() || !sym::provably_less_equal(zero, point, facts) ||
      !sym::provably_less_equal(point, extent, facts))
    return std::nullopt;
  return std::vector<Expr>{sym::simplify(point, facts)};
}

struct Finder {
  size_t most;
  const sym::Facts& facts;
  std::vector<AxisPoints> found;

  // Whether `expr` holds a term that is not affine; false in `possible` when one of them has no pieces.
  bool visit(Expr expr, bool& possible) {
    bool inside = false;
    for (size_t i = 0; i < expr.size(); ++i) inside = visit(expr.operand(i), possible) || inside;
    if (expr.kind() != Kind::floor_div && expr.kind() != Kind::mod) return inside;
    if (inside || !mentions_axis(expr)) return inside;
    Expr base = expr.operand(0), period = expr.operand(1);
    std::optional<Shifted> dividend = is_axis(base) ? shifted(base) : shifted_axis(base);
    std::optional<Expr> extent = dividend ? facts.extent(dividend->axis) : std::nullopt;
    std::optional<std::vector<Expr>> points;
    if (extent && !mentions_axis(period)) {
      bool constant = extent->is_constant() && period.is_constant() && dividend->offset.is_constant();
      points = constant ? constant_steps(*dividend, extent->constant(), period.constant(), most)
                        : symbolic_step(*dividend, *extent, period, facts);
    }
    if (points) {
      found.push_back({dividend->axis, std::move(*points)});
    } else {
      possible = false;
    }
    return true;
  }
};

size_t piece_count(std::span<const AxisPoints> points) {
  size_t count = 1;
  for (const AxisPoints& axis : points) count *= axis.points.size() + 1;
  return count;
}

bool insert_point(std::vector<Expr>& points, Expr point, const sym::Facts& facts) {
  size_t at = 0;
  for (; at < points.size(); ++at) {
    if (points[at] == point) return true;
    if (sym::provably_less_equal(point, points[at], facts)) break;
    if (!sym::provably_less_equal(points[at], point, facts)) return false;
  }
  points.insert(points.begin() + static_cast<std::ptrdiff_t>(at), point);
  return true;
}

}  // namespace

std::optional<std::vector<AxisPoints>> wrap_points(Expr expr, size_t most, const sym::Facts& facts) {
  Finder finder{most, facts, {}};
  bool possible = true;
  if (!finder.visit(expr, possible) || !possible) return std::nullopt;
  return std::move(finder.found);
}

bool add_points(std::vector<AxisPoints>& to, std::span<const AxisPoints> from, size_t most,
                const sym::Facts& facts) {
  std::vector<AxisPoints> joined = to;
  for (const AxisPoints& added : from) {
    auto same =
        std::find_if(joined.begin(), joined.end(), [&](const AxisPoints& a) { return a.axis == added.axis; });
    if (same == joined.end()) same = joined.insert(joined.end(), {added.axis, {}});
    for (Expr point : added.points)
      if (!insert_point(same->points, point, facts)) return false;
  }
  if (piece_count(joined) > most) return false;
  to = std::move(joined);
  return true;
}

std::vector<Piece> pieces_at(std::span<const AxisPoints> points, const sym::Facts& facts) {
  std::vector<Piece> pieces{{}};
  for (const AxisPoints& axis : points) {
    std::vector<Expr> bounds{axis.axis.context().constant(0)};
    bounds.insert(bounds.end(), axis.points.begin(), axis.points.end());
    bounds.push_back(*facts.extent(axis.axis));
    std::vector<Piece> next;
    for (const Piece& piece : pieces) {
      for (size_t i = 0; i + 1 < bounds.size(); ++i) {
        next.push_back(piece);
        next.back().ranges.push_back({axis.axis, bounds[i], bounds[i + 1]});
      }
    }
    pieces = std::move(next);
  }
  return pieces;
}

InPiece::InPiece(const Piece& piece, const sym::Facts& facts) : outside_(facts), inside_(facts) {
  for (size_t k = 0; k < piece.ranges.size(); ++k) {
    const PieceRange& range = piece.ranges[k];
    Expr local = range.axis.context().symbol(fmt::format("_in{}", k), sym::SymbolKind::axis);
    inside_.set_extent(local, sym::simplify(range.end - range.begin, facts));
    in_.push_back({range.axis, local + range.begin});
    out_.push_back({local, range.axis - range.begin});
  }
}

Expr InPiece::operator()(Expr expr) const {
  Expr known = sym::simplify(sym::substitute(expr, in_), inside_);
  return sym::simplify(sym::substitute(known, out_), outside_);
}

}  // namespace kerf::axis
