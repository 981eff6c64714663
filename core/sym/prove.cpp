// Proofs. `a < b` is `b - a - 1 >= 0`; a difference is bounded below by replacing what has a symbolic bound:
//   i < n:            n - i - 1           >=  n - (n - 1) - 1                  =  0
//   n*i + j < n*m:    n*m - n*i - j - 1   >=  n*m - n*(m - 1) - (n - 1) - 1    =  0    for i < m, j < n
// Bounds that are minima or maxima are then taken case by case.
#include <algorithm>

#include "sym/analysis.h"
#include "sym/eval.h"
#include "sym/integers.h"
#include "sym/products.h"
#include "sym/simplify.h"

namespace kerf::sym {

namespace {

constexpr int kMaxProofDepth = 3;        // nested cases and bounds inside quotients
constexpr size_t kMaxReplacements = 16;  // atoms replaced by bounds in one proof

// expr = coefficient * atom + rest, where rest may mention the atom only inside other atoms.
struct Linear {
  Expr coefficient;
  Expr rest;
};

Linear linear_in(Expr expr, Expr atom) {
  InlineVector<Expr, 16> coefficient, rest;
  for (size_t i = 0; i < term_count(expr); ++i) {
    Expr term = term_at(expr, i);
    std::optional<Expr> factor = divide_product(term, atom);
    (factor ? coefficient : rest).push_back(factor ? *factor : term);
  }
  return {add(expr.context(), coefficient.span()), add(expr.context(), rest.span())};
}

}  // namespace

// A bound that mentions sizes; constants are left to the intervals.
std::optional<Expr> Analysis::symbolic_upper(Expr atom, int depth) {
  if (atom.is_symbol()) {
    std::optional<Expr> extent = facts_.extent(atom);
    if (extent && !extent->is_constant()) return *extent - 1;
  } else if (atom.kind() == Kind::mod) {
    Expr divisor = atom.operand(1);
    if (!divisor.is_constant() && positive_divisor(divisor)) return divisor - 1;
  } else if (atom.kind() == Kind::floor_div && depth < kMaxProofDepth) {
    Expr divisor = atom.operand(1);
    if (!positive_divisor(divisor)) return std::nullopt;
    Expr bound = replace_by_bounds(atom.operand(0), true, depth + 1);
    if (!(bound == atom.operand(0))) return floor_div(bound, divisor);
  }
  return std::nullopt;
}

// Never less than expr (upwards) or never more. Where a coefficient has no known sign, the atom stays.
Expr Analysis::replace_by_bounds(Expr expr, bool upwards, int depth) {
  NodeMap<bool> seen;
  for (size_t replaced = 0; replaced < kMaxReplacements;) {
    bool changed = false;
    for (size_t i = 0; i < term_count(expr) && !changed; ++i) {
      Factors factors;
      factors_of(term_at(expr, i), factors);
      for (Expr atom : factors) {
        if (seen.find(atom)) continue;
        seen.set(atom, true);
        std::optional<Expr> bound = symbolic_upper(atom, depth);
        if (!bound) continue;
        Linear linear = linear_in(expr, atom);
        Range sign = range(linear.coefficient);
        bool applies = upwards ? sign.lo.value_or(-1) >= 0 : sign.hi.value_or(1) <= 0;
        if (!applies) continue;
        expr = add(mul(linear.coefficient, *bound), linear.rest);
        ++replaced;
        changed = true;
        break;
      }
    }
    if (!changed) break;
  }
  return expr;
}

// A minimum or maximum equals one of its operands: prove the claim for each.
bool Analysis::non_negative_by_case(Expr expr, int depth) {
  for (size_t i = 0; i < term_count(expr); ++i) {
    Factors factors;
    factors_of(term_at(expr, i), factors);
    for (Expr atom : factors) {
      if (atom.kind() != Kind::min && atom.kind() != Kind::max) continue;
      Linear linear = linear_in(expr, atom);
      Range sign = range(linear.coefficient);
      bool rising = sign.lo.value_or(-1) >= 0, falling = sign.hi.value_or(1) <= 0;
      // The operand that helps suffices where the extremum only helps more: -min(a, b) >= -a.
      bool any = (atom.kind() == Kind::min && falling) || (atom.kind() == Kind::max && rising);
      bool proved = !any;
      for (size_t k = 0; k < atom.size() && proved != any; ++k)
        proved = non_negative(add(mul(linear.coefficient, atom.operand(k)), linear.rest), depth + 1);
      return proved;
    }
  }
  return false;
}

bool Analysis::non_negative(Expr expr, int depth) {
  if (range(expr).lo.value_or(-1) >= 0) return true;
  if (expr.is_constant() || term_count(expr) > kMaxWidth) return false;
  Expr bounded = replace_by_bounds(expr, false, depth);
  bool is_new = !(bounded == expr);
  if (is_new && range(bounded).lo.value_or(-1) >= 0) return true;
  if (depth >= kMaxProofDepth) return false;
  return non_negative_by_case(expr, depth) || (is_new && non_negative_by_case(bounded, depth));
}

// Term by term: the divisor's factors are among the term's, and its constant divides what is left.
bool Analysis::divides(Expr divisor, Expr expr) {
  if (divisor.is_constant(1) || divisor.is_constant(-1) || expr.is_constant(0) || divisor == expr)
    return true;
  if (divisor.kind() == Kind::add) return mod(expr, divisor).is_constant(0);
  int64_t unit = coefficient_of(divisor);
  Expr base = rest_of(divisor);
  if (unit == 0 || unit == kMinInt) return false;
  if (unit < 0) unit = -unit;
  InlineVector<Expr, 16> left;
  for (size_t i = 0; i < term_count(expr); ++i) {
    std::optional<Expr> over = divide_product(term_at(expr, i), base);
    if (!over) return false;
    left.push_back(*over);
  }
  Modulus known = modulus(add(expr.context(), left.span()));
  return known.modulus % unit == 0 && known.remainder % unit == 0;
}

bool provably_equal(Expr a, Expr b, const Facts& facts) {
  if (a == b) return true;
  return simplify(a - b, facts).is_constant(0);
}

bool provably_less(Expr a, Expr b, const Facts& facts) { return provably_less_equal(a + 1, b, facts); }

bool provably_less_equal(Expr a, Expr b, const Facts& facts) {
  Analysis analysis(facts);
  Expr difference = b - a;
  return analysis.non_negative(difference) || analysis.non_negative(simplify(difference, facts));
}

bool provably_divides(Expr divisor, Expr expr, const Facts& facts) {
  if (divisor.is_constant(0)) return expr.is_constant(0);
  return Analysis(facts).divides(divisor, expr) || simplify(mod(expr, divisor), facts).is_constant(0);
}

std::optional<Expr> exact_div(Expr expr, Expr divisor, const Facts& facts) {
  if (divisor.is_constant(0) || !provably_divides(divisor, expr, facts)) return std::nullopt;
  return simplify(floor_div(expr, divisor), facts);
}

}  // namespace kerf::sym
