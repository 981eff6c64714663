#pragma once
// simplify(expr, facts): an equal expression (for all values the facts allow) with fewer divisions.
// Properties, tested: value kept; idempotent; the same handle when nothing changed; bounded work (each node
// is visited once, and no rule runs on a node wider than kMaxWidth operands). Rules are grouped by family:
// rules_div.cpp, rules_mod.cpp and their common rules_digits.cpp, rules_minmax.cpp, rules_sum.cpp.
#include "sym/expr.h"
#include "sym/facts.h"

namespace kerf::sym {

inline constexpr size_t kMaxWidth = 64;

Expr simplify(Expr expr, const Facts& facts);

}  // namespace kerf::sym
