#pragma once
// The second half of canonicalisation: axes that every access walks as one become one, useless ones go, the rest is
// ordered. Works on strides, so that its cost depends on how many accesses differ in them, not on how many there are.
#include <cstdint>
#include <vector>

#include "axis/domain.h"
#include "axis/pieces.h"

namespace kerf::axis {

struct DomainGuard {
  sym::Expr value;  // value < bound
  sym::Expr bound;
};

// Strides of one or more affine accesses over all axes.
struct StrideRow {
  std::vector<sym::Expr> strides;
  int64_t loaded = 0, stored = 0;  // bytes
};

// An index that is not affine, in one piece or all of them.
struct OpaqueIndex {
  size_t access;  // the caller's number
  sym::Expr index;
};

struct Axes {
  std::vector<DomainAxis> axes;
  std::vector<AxisPoints> points;  // of axes that fall into pieces
  std::vector<StrideRow> rows;
  std::vector<OpaqueIndex> opaque;
  std::vector<DomainMask> masks;
  std::vector<DomainGuard> guards;
  std::vector<sym::Substitution> map;  // the domain's symbols over the axes
  sym::Facts facts;
};

void merge_axes(Axes& state, const FreshSymbol& fresh);
void drop_unused(Axes& state);
void order_axes(Axes& state);

}  // namespace kerf::axis
