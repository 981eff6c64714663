#pragma once
// How an index expression depends on axes: coefficients, density, inversion. Pure analyses of expressions.
//
// Worked example, axes i < 8 and j < 64:
//   64*i + j      affine, coefficients (64, 1); dense: its values are 0 .. 511, each met once
//   i + 8*j       affine, coefficients (1, 8); dense, with i the fast axis
//   128*i + j     affine, not dense (it skips)
//   64*i          affine and dense over i alone; j is free
//   (j + 3) % 64  not affine in j
#include <optional>
#include <span>
#include <vector>

#include "sym/expr.h"
#include "sym/facts.h"

namespace kerf::axis {

struct AxisInfo {
  sym::Expr symbol;
  sym::Expr extent;
};

// expr = sum(coefficients[k] * axes[k]) + rest, where neither the coefficients nor rest mention an axis.
struct LinearForm {
  std::vector<sym::Expr> coefficients;
  sym::Expr rest;
};
std::optional<LinearForm> linear_form(sym::Expr expr, std::span<const AxisInfo> axes);

// One place of a mixed-radix number: axes[axis] has this stride.
struct Digit {
  size_t axis;
  sym::Expr stride;
};

// The digits of a dense expression, fastest first: stride 1, then stride * extent of the one before, and so on; rest is
// zero. Axes of extent 1 and axes it does not mention are left out. nullopt when it is not affine, skips, or overlaps.
std::optional<std::vector<Digit>> dense_digits(sym::Expr expr, std::span<const AxisInfo> axes,
                                               const sym::Facts& facts);

// An affine expression that takes no value twice: offset + sum of stride * (a dense number), where a run's stride is at
// least the span of the runs below it. 256*i + 2*j + 1 with j < 64 has the runs 2 * (64 values) and 256 * (all i).
struct DigitRun {
  sym::Expr stride;
  sym::Expr count;            // of the dense number's values
  std::vector<Digit> digits;  // of the dense number, fastest first
};
struct DigitRuns {
  sym::Expr offset;  // of sizes
  std::vector<DigitRun> runs;
};

// nullopt when it is not affine, overlaps, or depends on values from memory.
std::optional<DigitRuns> digit_runs(sym::Expr expr, std::span<const AxisInfo> axes, const sym::Facts& facts);

// The dense number of a run over the axes.
sym::Expr run_value(const DigitRun& run, std::span<const AxisInfo> axes);

// Solves dense(axes) == position for the axes of the digits: axis = (position // stride) % extent, simplified. `position`
// lies in [0, product of the digits' extents).
std::vector<sym::Substitution> invert(std::span<const Digit> digits, std::span<const AxisInfo> axes,
                                      sym::Expr position, const sym::Facts& facts);

// Solves dense(axes) == dense(others) for the axes of `digits`; `other_digits` are those of the other number, of as many values.
// What inverting that number gives, at less cost: what lies between two strides that both have is solved alone, and mostly an
// axis is an axis.
std::vector<sym::Substitution> match_digits(std::span<const Digit> digits, std::span<const AxisInfo> axes,
                                            std::span<const Digit> other_digits,
                                            std::span<const AxisInfo> others, const sym::Facts& facts);

// The product of the extents.
sym::Expr extent_product(sym::Context& context, std::span<const AxisInfo> axes);

// Row-major position: the last axis is the fastest.
sym::Expr row_major(sym::Context& context, std::span<const AxisInfo> axes);

bool is_axis(sym::Expr expr);
bool mentions_axis(sym::Expr expr);

// expr = scale * axis + offset, over one axis symbol that occurs nowhere else; the offset is not zero or the scale not 1.
struct Shifted {
  sym::Expr axis;
  int64_t scale;
  sym::Expr offset;
};
std::optional<Shifted> shifted_axis(sym::Expr expr);

// The change of `expr` when `symbol` grows by one, if that is the same everywhere; nullopt otherwise.
std::optional<sym::Expr> stride_over(sym::Expr expr, sym::Expr symbol);

}  // namespace kerf::axis
