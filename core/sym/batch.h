#pragma once
// substitute() and simplify() for many expressions at once: parts that they share are done once. The results are those of
// the single calls.
#include <span>

#include "sym/expr.h"
#include "sym/facts.h"

namespace kerf::sym {

void substitute_all(std::span<Expr> exprs, std::span<const Substitution> map);
void simplify_all(std::span<Expr> exprs, const Facts& facts);

}  // namespace kerf::sym
