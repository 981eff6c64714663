#pragma once
// What follows from facts for expressions, remembered per node for the length of one call. Facts must not
// change while an Analysis looks at them.
#include "sym/facts.h"
#include "sym/node_map.h"

namespace kerf::sym {

class Analysis {
 public:
  explicit Analysis(const Facts& facts) : facts_(facts) {}

  const Facts& facts() const { return facts_; }
  Range range(Expr expr);
  Modulus modulus(Expr expr);

  bool non_negative(Expr expr) { return non_negative(expr, 0); }
  // Of an expression that divides another: it is not zero.
  bool positive_divisor(Expr divisor) { return range(divisor).lo.value_or(-1) >= 0; }
  bool less(Expr a, Expr b) { return non_negative(b - a - 1); }
  bool less_equal(Expr a, Expr b) { return non_negative(b - a); }
  bool divides(Expr divisor, Expr expr);

 private:
  Range compute_range(Expr expr);
  Modulus compute_modulus(Expr expr);
  bool non_negative(Expr expr, int depth);
  bool non_negative_by_case(Expr expr, int depth);
  std::optional<Expr> symbolic_upper(Expr atom, int depth);
  Expr replace_by_bounds(Expr expr, bool upwards, int depth);

  const Facts& facts_;
  NodeMap<Range> ranges_;
  NodeMap<Modulus> moduli_;
};

}  // namespace kerf::sym
