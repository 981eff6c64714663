// Sums: digits of one number are put together again. With q = x // m and k any product:
//   whole      k*m*q + k*(x % m)        ->  k*x
//   floor      k*x - k*(x % m)          ->  k*m*q
//   low        k*x - k*m*q              ->  k*(x % m)
//   neighbour  k*m*(q % b) + k*(x % m)  ->  k*(x % (m*b))         b > 0
// Worked example: 3072*(p // 3072) + 128*((p // 128) % 24) + p % 128. The middle term has x = p // 128 and
// q = p // 3072, which is there 128*24 times: both become 128*(p // 128), and with p % 128 that is p.
// All of them are identities; q is looked up in its simplified form.
#include "sym/products.h"
#include "sym/rules.h"

namespace kerf::sym {

namespace {

enum class Match : uint8_t { exact, at_least };

// The coefficient of a rest among the terms of a sum.
int64_t coefficient_in(Expr sum, Expr rest) {
  for (size_t i = 0; i < term_count(sum); ++i)
    if (rest_of(term_at(sum, i)) == rest) return coefficient_of(term_at(sum, i));
  return 0;
}

bool matches(int64_t found, int64_t wanted, Match match) {
  if (match == Match::exact) return found == wanted;
  return wanted > 0 ? found >= wanted : found <= wanted;
}

// Whether the terms of `part`, constants aside, are all in the sum; false when it has no others.
bool contains(Expr sum, Expr part, Match match) {
  bool any = false;
  for (size_t i = 0; i < term_count(part); ++i) {
    Expr term = term_at(part, i);
    if (term.is_constant()) continue;
    if (!matches(coefficient_in(sum, rest_of(term)), coefficient_of(term), match)) return false;
    any = true;
  }
  return any;
}

// neighbour: some other term k*m*(q % b), where scale = k*m.
std::optional<Expr> join_neighbour(Expr sum, Expr term, Expr low, Expr quotient, Expr scale,
                                   Analysis& known) {
  Expr number = low.operand(0), step = low.operand(1);
  for (size_t i = 0; i < term_count(sum); ++i) {
    Factors factors;
    factors_of(term_at(sum, i), factors);
    for (Expr high : factors) {
      if (high.kind() != Kind::mod || !(high.operand(0) == quotient)) continue;
      if (!(without_factor(term_at(sum, i), high) == scale)) continue;
      if (!known.positive_divisor(high.operand(1))) continue;
      Expr joined = mod(number, mul(step, high.operand(1)));
      return sum - term - term_at(sum, i) + mul(without_factor(term, low), joined);
    }
  }
  return std::nullopt;
}

// term = k * low, low = x % m.
std::optional<Expr> join_remainder(Expr sum, Expr term, Expr low, Simplifier& simplifier) {
  Expr number = low.operand(0), step = low.operand(1);
  Expr count = without_factor(term, low);
  Expr quotient = simplifier.simplify(floor_div(number, step));
  Expr scale = mul(count, step);
  Expr high = mul(scale, quotient);
  Expr whole = mul(count, number);
  if (contains(sum, high, Match::exact)) return sum - term - high + whole;
  if (contains(sum, neg(whole), Match::exact)) return sum - term + whole - high;
  return join_neighbour(sum, term, low, quotient, scale, simplifier.known());
}

// term = -k*m * quotient, quotient = x // m. More of x than needed may be there.
std::optional<Expr> take_remainder(Expr sum, Expr term, Expr quotient) {
  Expr number = quotient.operand(0), step = quotient.operand(1);
  std::optional<Expr> count = divide_product(neg(without_factor(term, quotient)), step);
  if (!count) return std::nullopt;
  Expr whole = mul(*count, number);
  if (!contains(sum, whole, Match::at_least)) return std::nullopt;
  return sum - term - whole + mul(*count, mod(number, step));
}

}  // namespace

Expr rewrite_sum(Expr expr, Simplifier& simplifier) {
  for (size_t i = 0; i < expr.size(); ++i) {
    Expr term = expr.operand(i);
    Factors factors;
    factors_of(term, factors);
    for (Expr factor : factors) {
      std::optional<Expr> joined;
      if (factor.kind() == Kind::mod) joined = join_remainder(expr, term, factor, simplifier);
      if (factor.kind() == Kind::floor_div) joined = take_remainder(expr, term, factor);
      if (joined && !(*joined == expr)) return *joined;
    }
  }
  return expr;
}

}  // namespace kerf::sym
