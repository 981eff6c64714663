#pragma once
// Canonical axes of one domain: the same computation gets the same axes, in the same order, whatever order its accesses
// were met in (docs/axis.md has the algorithm with worked cases).
//
//   1. every range is cut at the points that all accesses together ask for (cut.h);
//   2. an axis whose wrapped terms are affine only on intervals falls into pieces (pieces.h), if the options allow some;
//   3. axes merge where every access walks them as one (stride of the outer = extent of the inner * stride of the inner,
//      zero and zero included) and both have the same binding; this also takes back cuts that separate nothing;
//   4. axes of extent 1 vanish, and axes that no access uses vanish unless they are empty or their multiplicity is a
//      reduction's;
//   5. the rest is ordered: the innermost axis is the one over which accesses move the most bytes at stride 1 (stores
//      count double), the others by falling strides of the heaviest accesses, ties by position.
// Legality and cost of putting nests on one domain are not decided here. What has no common cut shows as `derived`
// accesses, or as a `conflict` when hard cuts are concerned.
#include <optional>
#include <utility>
#include <vector>

#include "axis/domain.h"
#include "axis/merge.h"
#include "axis/pieces.h"

namespace kerf::axis {

// Pieces of one domain: more would cost a back end more code than masks or divisions cost time.
inline constexpr int kMaxPieces = 8;

// An access that is not affine on every piece. Its cost is `terms.size()` divisions at each point of `axes` (they can be
// hoisted out of all others), and what gathering costs where it could have been contiguous: `weight` bytes.
struct Derived {
  size_t access;
  std::vector<sym::Expr> terms;  // the // and % terms that are left, over the canonical axes, each once
  std::vector<size_t> axes;      // that the terms mention
  int64_t weight = 0;
};

struct Canonical {
  std::vector<DomainAxis> axes;        // per binding outermost first; bindings in the order they were given
  std::vector<sym::Substitution> map;  // every symbol of the domain over the axes
  std::vector<DomainGuard> guards;     // affine; points where one does not hold are not in the domain
  std::vector<Piece> pieces;      // each point lies in exactly one; at least one (without ranges: everything)
  std::vector<Derived> derived;   // in the order of accesses
  std::vector<DomainMask> masks;  // the domain's, over the axes
  // Two hard cuts of one range that have no chain: the range is left whole.
  std::optional<std::pair<HardCut, HardCut>> conflict;
  sym::Facts facts;  // the domain's, and the extents of the axes
};

struct CanonicalOptions {
  bool allow_guards = false;
  // Pieces that a back end is willing to emit: 1 leaves wrapped terms derived.
  int max_pieces = 1;
  bool pieces_at_masks = false;  // also where a comparison of an axis with a constant changes
  // Rather pieces of one small digit (12 for cuts at 6 and 4) than a derived access.
  bool avoid_derived = false;
};

Canonical canonicalize(const Domain& domain, const FreshSymbol& fresh, const CanonicalOptions& options = {});

// An index over the domain's symbols, as it is in one piece.
sym::Expr index_in(const Canonical& canonical, const Piece& piece, sym::Expr index);

// A mask in one piece; a constant when it is the same all over it.
struct MaskIn {
  std::optional<bool> constant;
  DomainMask mask;
};
MaskIn mask_in(const Canonical& canonical, const Piece& piece, const DomainMask& mask);

}  // namespace kerf::axis
