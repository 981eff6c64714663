#pragma once
// Pieces: where a wrapped term cannot be an affine sum of digits, its axis falls into intervals within each of which it is.
//
//   p < 56, (p + 3) % 56     [0, 53) p + 3      [53, 56) p - 53
//   p < s0, (p + 3) % s0     the same at s0 - 3, when s0 >= 3 is known
//   d < 12, d // 6, d % 4    [0, 4) [4, 6) [6, 8) [8, 12)
#include <optional>
#include <span>
#include <vector>

#include "axis/domain.h"

namespace kerf::axis {

// begin <= axis < end; never empty for constants.
struct PieceRange {
  sym::Expr axis;
  sym::Expr begin, end;
};

// A box of the domain: the axes that are not listed run over their whole extents.
struct Piece {
  std::vector<PieceRange> ranges;
};

// Points of one axis where pieces meet: 0 < point < extent, ascending.
struct AxisPoints {
  sym::Expr axis;
  std::vector<sym::Expr> points;
};

// Where the innermost // and % terms of `expr` step to another quotient. nullopt when a term depends on several axes, steps more
// than `most` times, or at a place that cannot be proved to lie inside the axis.
std::optional<std::vector<AxisPoints>> wrap_points(sym::Expr expr, size_t most, const sym::Facts& facts);

// Adds points to those of their axes, keeping order; false (and nothing changes) when the order cannot be proved or the
// domain would have more than `most` pieces.
bool add_points(std::vector<AxisPoints>& to, std::span<const AxisPoints> from, size_t most,
                const sym::Facts& facts);

// Every combination of intervals of the given axes, the first axis outermost. `facts` know the extents.
std::vector<Piece> pieces_at(std::span<const AxisPoints> points, const sym::Facts& facts);

// Simplifies expressions with what is known inside one piece. The axes keep their values: p - 53, not an offset from the
// piece's begin.
class InPiece {
 public:
  InPiece(const Piece& piece, const sym::Facts& facts);
  sym::Expr operator()(sym::Expr expr) const;

 private:
  sym::Facts outside_, inside_;
  std::vector<sym::Substitution> in_, out_;
};

}  // namespace kerf::axis
