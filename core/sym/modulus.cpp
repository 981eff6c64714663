// Residues: what is known of an expression modulo some number.
#include <numeric>

#include "sym/analysis.h"
#include "sym/eval.h"
#include "sym/integers.h"

namespace kerf::sym {

namespace {

constexpr Modulus kUnknown{1, 0};

// With the remainder in [0, modulus); modulus 0 keeps it. Nothing is known when a part does not fit.
Modulus normalise(Wide modulus, Wide remainder) {
  if (modulus < 0) modulus = -modulus;
  if (!fits(modulus)) return kUnknown;
  if (modulus == 0) return fits(remainder) ? Modulus{0, static_cast<int64_t>(remainder)} : kUnknown;
  Wide rest = remainder % modulus;
  if (rest < 0) rest += modulus;
  return {static_cast<int64_t>(modulus), static_cast<int64_t>(rest)};
}

Wide gcd_wide(Wide a, Wide b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    Wide next = a % b;
    a = b;
    b = next;
  }
  return a;
}

Modulus sum_of(const Modulus& a, const Modulus& b) {
  return normalise(gcd_wide(a.modulus, b.modulus), static_cast<Wide>(a.remainder) + b.remainder);
}

// (m*x + r)(n*y + s) = mn*xy + ms*x + nr*y + rs
Modulus product_of(const Modulus& a, const Modulus& b) {
  Wide both = static_cast<Wide>(a.modulus) * b.modulus;
  Wide left = static_cast<Wide>(a.modulus) * b.remainder;
  Wide right = static_cast<Wide>(b.modulus) * a.remainder;
  Wide remainder = static_cast<Wide>(a.remainder) * b.remainder;
  return normalise(gcd_wide(gcd_wide(both, left), right), remainder);
}

// Of one value that is either a or b.
Modulus either(const Modulus& a, const Modulus& b) {
  Wide difference = static_cast<Wide>(a.remainder) - b.remainder;
  return normalise(gcd_wide(gcd_wide(a.modulus, b.modulus), difference), a.remainder);
}

Modulus quotient_of(const Modulus& a, int64_t divisor) {
  if (divisor <= 0 || a.modulus % divisor != 0) return kUnknown;
  return normalise(a.modulus / divisor, floor_div_int(a.remainder, divisor));
}

// e = r (mod m) and e % d = e - d*q, so e % d = r (mod gcd(m, d)); exactly r % d when d divides m.
Modulus remainder_of(const Modulus& a, const Modulus& divisor) {
  bool exact = divisor.modulus == 0 && divisor.remainder > 0;
  if (exact && a.modulus % divisor.remainder == 0) return {0, mod_int(a.remainder, divisor.remainder)};
  Wide step = gcd_wide(divisor.modulus, divisor.remainder);  // divides the divisor
  return normalise(gcd_wide(a.modulus, step), a.remainder);
}

Modulus combine(Kind kind, const Modulus& a, const Modulus& b) {
  switch (kind) {
    case Kind::constant:
    case Kind::symbol: break;
    case Kind::mul: return product_of(a, b);
    case Kind::add: return sum_of(a, b);
    case Kind::floor_div: return b.modulus == 0 ? quotient_of(a, b.remainder) : kUnknown;
    case Kind::mod: return remainder_of(a, b);
    case Kind::min:
    case Kind::max: return either(a, b);
  }
  UNREACHABLE("a leaf has no operands");
}

}  // namespace

Modulus Analysis::compute_modulus(Expr expr) {
  Modulus result = modulus(expr.operand(0));
  for (size_t i = 1; i < expr.size(); ++i) result = combine(expr.kind(), result, modulus(expr.operand(i)));
  return result;
}

Modulus Analysis::modulus(Expr expr) {
  if (expr.is_constant()) return {0, expr.constant()};
  if (const Modulus* known = moduli_.find(expr)) return *known;
  Modulus result = kUnknown;
  if (expr.is_symbol()) {
    Modulus given = facts_.modulus(expr);
    result = normalise(given.modulus, given.remainder);
  } else {
    result = compute_modulus(expr);
  }
  moduli_.set(expr, result);
  return result;
}

}  // namespace kerf::sym
