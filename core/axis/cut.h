#pragma once
// Cutting one range at points that form a divisibility chain.
//
// Every term `(p // a) % b` of any access asks for cuts of p at a and a*b; `p // a` for one at a; `p % b` for one at b.
// When all points of a range divide one another in turn, 1 = c0 | c1 | ... | cm, the range becomes digits with strides ci
// and extents c(i+1)/ci, the top digit having ceil(N / cm), and each term is an affine sum of digits.
//
//   p < 9216, points 128, 3072:   p = 3072*q + 128*h + d,  q < 3, h < 24, d < 128
//   p < 48, points 6, 4:          no chain: 4 does not divide 6
//   p < 10, point 4:              p = 4*q + d, q < 3, d < 4, guarded by p < 10
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sym/expr.h"
#include "sym/facts.h"

namespace kerf::axis {

// A point where a range must (or would like to) be cut, with the bytes of the accesses that ask for it.
struct CutPoint {
  sym::Expr axis;  // the range's symbol
  sym::Expr point;
  int64_t weight = 0;
};

// Adds the cut points that `expr` asks for, for every axis symbol in it. Terms over anything but a bare axis symbol ask
// for nothing here (they were not reducible in simplify, and stay derived).
void collect_cut_points(sym::Expr expr, int64_t weight, std::vector<CutPoint>& out);

struct Cut {
  std::vector<sym::Expr> symbols;  // outermost first
  std::vector<sym::Expr> extents;
  sym::Expr value;       // the range's symbol in terms of the digits
  bool guarded = false;  // value < extent must be checked
};

// Makes a new axis symbol; called once per digit, outermost first.
using FreshSymbol = std::function<sym::Expr()>;

// The largest chain among the points of one range: heaviest points first, ties by structural order; points that break the
// chain are left out (their accesses stay derived). Points that do not divide the extent are used only when
// `allow_guard`. nullopt when no point is left: the range stays whole.
std::optional<Cut> cut_range(sym::Expr extent, std::span<const CutPoint> points, const sym::Facts& facts,
                             bool allow_guard, const FreshSymbol& fresh);

}  // namespace kerf::axis
