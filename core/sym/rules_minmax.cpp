// Minima and maxima: an operand that another one always beats is dropped.
//   min(64, n - 64*p0)  ->  64              when n - 64*p0 >= 64 for all p0
//   max(i, i + j)       ->  i + j           j >= 0
#include "sym/inline_vector.h"
#include "sym/rules.h"

namespace kerf::sym {

namespace {

// Pairwise proofs are quadratic; beyond so many operands only intervals are compared.
constexpr size_t kMaxProofOperands = 8;

// Whether the extremum of both is always `winner`.
bool beats(Kind kind, Expr winner, Expr loser, bool by_proof, Analysis& known) {
  Expr low = kind == Kind::min ? winner : loser;
  Expr high = kind == Kind::min ? loser : winner;
  Range of_low = known.range(low), of_high = known.range(high);
  if (of_low.hi && of_high.lo && *of_low.hi <= *of_high.lo) return true;
  return by_proof && known.less_equal(low, high);
}

}  // namespace

Expr rewrite_extremum(Expr expr, Simplifier& simplifier) {
  bool by_proof = expr.size() <= kMaxProofOperands;
  InlineVector<Expr, 8> kept;
  for (size_t i = 0; i < expr.size(); ++i) {
    bool beaten = false;
    for (size_t k = 0; k < kept.size() && !beaten; ++k)
      beaten = beats(expr.kind(), kept[k], expr.operand(i), by_proof, simplifier.known());
    for (size_t k = i + 1; k < expr.size() && !beaten; ++k)
      beaten = beats(expr.kind(), expr.operand(k), expr.operand(i), by_proof, simplifier.known());
    if (!beaten) kept.push_back(expr.operand(i));
  }
  if (kept.size() == expr.size()) return expr;
  Expr result = kept[0];
  for (size_t i = 1; i < kept.size(); ++i)
    result = expr.kind() == Kind::min ? min(result, kept[i]) : max(result, kept[i]);
  return result;
}

}  // namespace kerf::sym
