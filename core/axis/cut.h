#pragma once
// Cutting one range at points that form a divisibility chain.
//
// Every term `(p // a) % b` of an access asks for cuts of p at a and a*b; `p // a` for one at a; `p % b` for one at b. The
// points that one access asks for are its cut set: it becomes affine when all of them are taken. Points that divide one
// another in turn, 1 = c0 | c1 | ... | cm, make digits with strides ci and extents c(i+1)/ci, the top digit having
// ceil(N / cm).
//
//   p < 9216, sets {128}, {128, 3072}, {3072}:  p = 3072*q + 128*h + d,  q < 3, h < 24, d < 128
//   p < 48, sets {6}, {4}:                      no chain: the lighter one is left out
//   p < 10, set {4}:                            p = 4*q + d, q < 3, d < 4, guarded by p < 10
//   p < 1024, (p + 64) % 128:                   set {64, 128}: the digit of 2 wraps as 1 - h
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "axis/domain.h"

namespace kerf::axis {

// Points of one range that are only worth taking together.
struct CutSet {
  sym::Expr axis;                 // the range's symbol
  std::vector<sym::Expr> points;  // in structural order, each once
  int64_t weight = 0;             // bytes of the accesses that become affine with it
};

// The cut sets of one access, one for each axis symbol that a term divides. Terms over anything but one bare axis symbol and a
// constant ask for nothing (they were not reducible in simplify, and stay derived). `offsets`: also those of
// (p + c) // a and (p + c) % b, which need pieces unless the digit that wraps has two values.
std::vector<CutSet> cut_sets(sym::Expr expr, int64_t weight, bool offsets);

struct ChainOptions {
  bool allow_guard = false;  // points that do not divide the extent
  // Where sets have no common chain, put all of them inside one small digit (12 for 6 and 4) if its pieces are so few.
  int max_pieces = 1;
};

// Points of one range that divide one another, smallest first, with the largest weight of complete sets: exact up to 12
// distinct sets, beyond that heaviest first; ties by structural order. `hard` points come first, then sets, then the `soft`
// points of comparisons, all that the digits do not decide already or none. nullopt when the hard points have no chain.
std::optional<std::vector<sym::Expr>> choose_chain(sym::Expr extent, std::span<const sym::Expr> hard,
                                                   std::span<const CutSet> sets,
                                                   std::span<const sym::Expr> soft, const sym::Facts& facts,
                                                   const ChainOptions& options);

struct Cut {
  std::vector<sym::Expr> symbols;  // outermost first
  std::vector<sym::Expr> extents;
  sym::Expr value;       // the range's symbol in terms of the digits
  bool guarded = false;  // value < extent must be checked
};

// The digits of a chain that is not empty.
Cut cut_range(sym::Expr extent, std::span<const sym::Expr> chain, const sym::Facts& facts,
              const FreshSymbol& fresh);

}  // namespace kerf::axis
