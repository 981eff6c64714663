#pragma once
// The inside of simplify(): the driver, and one rewrite per kind of node.
//
// A rewrite looks at one node whose operands are simplified. It returns an equal expression that is closer
// to the canonical form, or the node itself when no rule applies; the driver simplifies what it returns.
// Every rule must shrink something (docs/sym.md lists what), or the driver would not end; a budget backs
// that up.
#include "sym/analysis.h"

namespace kerf::sym {

class Simplifier {
 public:
  explicit Simplifier(const Facts& facts) : known_(facts) {}

  Expr simplify(Expr expr);
  void renew_budget() { budget_ = kBudget; }
  Analysis& known() { return known_; }

 private:
  Expr simplify_operands(Expr expr);
  Expr rewrite(Expr expr);

  Analysis known_;
  NodeMap<Expr> simplified_;
  static constexpr int kBudget = 20000;  // rule applications; far beyond what real expressions take
  int budget_ = kBudget;
};

Expr rewrite_floor_div(Expr expr, Simplifier& simplifier);
Expr rewrite_mod(Expr expr, Simplifier& simplifier);
Expr rewrite_sum(Expr expr, Simplifier& simplifier);
Expr rewrite_extremum(Expr expr, Simplifier& simplifier);

// dividend = multiple + small, where some g divides the divisor and the multiple, and 0 <= small < g. Then
//   dividend // divisor = multiple // divisor     and     dividend % divisor = multiple % divisor + small.
struct DigitSplit {
  Expr multiple;
  Expr small;
};
// The split with the largest g, or nothing when it would change nothing. The divisor is positive, no sum.
std::optional<DigitSplit> split_digits(Expr dividend, Expr divisor, Analysis& known);

// x when dividend = -1 - x modulo a constant divisor and all of its terms are negative: 127 - p of 128.
std::optional<Expr> reversed_of(Expr dividend, Expr divisor);

// `value(dividend)` when the dividend is k*x + c of one symbol x with exactly two values: an affine function of x that
// agrees on both. (h + 1) % 2 with h < 2 is 1 - h; (h + 1) // 2 is h.
std::optional<Expr> of_two_values(Expr dividend, Expr divisor, int64_t (*value)(int64_t, int64_t),
                                  Analysis& known);

}  // namespace kerf::sym
