// Intervals. A bound that is unknown, or does not fit, is infinite here and absent in a Range.
#include <algorithm>

#include "sym/analysis.h"
#include "sym/integers.h"

namespace kerf::sym {

namespace {

// Beyond every product of two int64.
constexpr Wide kInfinity = static_cast<Wide>(1) << 126;

struct Interval {
  Wide lo = -kInfinity;
  Wide hi = kInfinity;
};

bool is_finite(Wide value) { return value > -kInfinity && value < kInfinity; }

Interval interval_of(const Range& range) {
  return {range.lo ? *range.lo : -kInfinity, range.hi ? *range.hi : kInfinity};
}

Range range_of_interval(const Interval& interval) {
  Range range;
  if (fits(interval.lo)) range.lo = static_cast<int64_t>(interval.lo);
  if (fits(interval.hi)) range.hi = static_cast<int64_t>(interval.hi);
  return range;
}

Wide plus(Wide a, Wide b) {
  if (!is_finite(a)) return a;
  return is_finite(b) ? a + b : b;
}

Wide times(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  if (is_finite(a) && is_finite(b)) return a * b;
  return (a < 0) == (b < 0) ? kInfinity : -kInfinity;
}

// Rounds down; b > 0.
Wide over(Wide a, Wide b) {
  if (!is_finite(a)) return a;
  if (!is_finite(b)) return a < 0 ? -1 : 0;
  Wide quotient = a / b;
  return a % b < 0 ? quotient - 1 : quotient;
}

Interval multiply(const Interval& a, const Interval& b) {
  auto [lo, hi] = std::minmax({times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)});
  return {lo, hi};
}

Interval negate(const Interval& a) { return {-a.hi, -a.lo}; }

// A divisor is not zero: where it is, the expression has no value to bound.
Interval without_zero(Interval divisor) {
  if (divisor.lo == 0) divisor.lo = 1;
  if (divisor.hi == 0) divisor.hi = -1;
  return divisor;
}

Interval divide(Interval a, Interval b) {
  b = without_zero(b);
  if (b.hi < 0) {
    a = negate(a);
    b = negate(b);
  }
  if (b.lo > 0) return {over(a.lo, a.lo < 0 ? b.lo : b.hi), over(a.hi, a.hi < 0 ? b.hi : b.lo)};
  // |a // b| <= |a| for every non-zero b.
  Wide bound = std::max({a.lo, -a.lo, a.hi, -a.hi});
  return {-bound, bound};
}

Interval remainder(const Interval& a, Interval b) {
  b = without_zero(b);
  if (b.lo > 0) {
    if (a.lo >= 0 && a.hi < b.lo) return a;
    bool constant_divisor = b.lo == b.hi;
    if (constant_divisor && is_finite(a.lo) && is_finite(a.hi) && over(a.lo, b.lo) == over(a.hi, b.lo)) {
      Wide base = over(a.lo, b.lo) * b.lo;
      return {a.lo - base, a.hi - base};
    }
    Wide top = is_finite(b.hi) ? b.hi - 1 : kInfinity;
    return {0, a.lo >= 0 ? std::min(top, a.hi) : top};
  }
  return {is_finite(b.lo) ? std::min<Wide>(b.lo + 1, 0) : -kInfinity,
          is_finite(b.hi) ? std::max<Wide>(b.hi - 1, 0) : kInfinity};
}

Interval combine(Kind kind, const Interval& a, const Interval& b) {
  switch (kind) {
    case Kind::constant:
    case Kind::symbol: break;
    case Kind::mul: return multiply(a, b);
    case Kind::add: return {plus(a.lo, b.lo), plus(a.hi, b.hi)};
    case Kind::floor_div: return divide(a, b);
    case Kind::mod: return remainder(a, b);
    case Kind::min: return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case Kind::max: return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
  }
  UNREACHABLE("a leaf has no operands");
}

// An intermediate that leaves int64 stays an infinite bound, never a wrapped one.
Interval clamp(const Interval& interval) { return interval_of(range_of_interval(interval)); }

}  // namespace

Range Analysis::compute_range(Expr expr) {
  Interval result = interval_of(range(expr.operand(0)));
  for (size_t i = 1; i < expr.size(); ++i)
    result = clamp(combine(expr.kind(), result, interval_of(range(expr.operand(i)))));
  return range_of_interval(result);
}

Range Analysis::range(Expr expr) {
  if (expr.is_constant()) return {expr.constant(), expr.constant()};
  if (const Range* known = ranges_.find(expr)) return *known;
  Range result = expr.is_symbol() ? facts_.range(expr) : compute_range(expr);
  ranges_.set(expr, result);
  return result;
}

}  // namespace kerf::sym
