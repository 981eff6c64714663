#pragma once
// Canonical axes of one domain: the same computation gets the same axes, in the same order, whatever order its accesses
// were met in (docs/axis.md has the algorithm with worked cases).
//
//   1. every range is cut at the points that all accesses together ask for (cut.h);
//   2. neighbours merge where every access walks them as one (stride of the outer = extent of the inner * stride of the
//      inner, zero and zero included) and both have the same binding;
//   3. axes of extent 1 vanish, and axes that no access uses vanish unless they are empty or their multiplicity is a
//      reduction's;
//   4. the rest is ordered: the innermost axis is the one over which accesses move the most bytes at stride 1 (stores
//      count double), the others by falling strides of the heaviest accesses, ties by position.
// Legality and cost of putting nests on one domain are not decided here; a conflict shows as `derived` accesses.
#include <cstdint>
#include <span>
#include <vector>

#include "axis/cut.h"
#include "sym/expr.h"
#include "sym/facts.h"

namespace kerf::axis {

struct DomainAxis {
  sym::Expr symbol;
  sym::Expr extent;
  // Axes with different bindings never merge: kept and reduced axes, axes bound by different sets of loops or values.
  uint32_t binding = 0;
  bool keep_unused = false;  // a reduction's axis: its extent counts even when no access uses it
};

struct DomainAccess {
  sym::Expr index;
  int64_t weight = 1;  // bytes moved over the whole domain
  bool is_store = false;
};

struct DomainGuard {
  sym::Expr value;  // value < bound
  sym::Expr bound;
};

struct Canonical {
  std::vector<DomainAxis> axes;        // per binding outermost first; bindings in the order they were given
  std::vector<sym::Substitution> map;  // every old symbol over the new axes
  std::vector<DomainGuard> guards;
  std::vector<size_t> derived;  // accesses that are not affine in the axes
};

struct CanonicalOptions {
  bool allow_guards = false;
};

Canonical canonicalize(std::span<const DomainAxis> axes, std::span<const DomainAccess> accesses,
                       sym::Facts facts, const FreshSymbol& fresh, const CanonicalOptions& options = {});

}  // namespace kerf::axis
