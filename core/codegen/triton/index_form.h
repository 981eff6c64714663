#pragma once
// What is known of an integer in a kernel: the range of its values, and its form as a sum of symbols. A symbol is a lane
// of one `tl.arange`, a loop's variable, or a scalar whose computation is not a sum. For
// `x0 = tile * 8 + tl.arange(0, 8)` with `tile` below 512 the form is `8*tile + lane` and the range [0, 4095].
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace kerf::triton {

using SymbolId = Id<struct SymbolTag>;

// Both ends belong to it; kUnbounded and beyond mean that nothing is known. Arithmetic saturates there.
struct Range {
  static constexpr int64_t kUnbounded = int64_t{1} << 62;
  int64_t low = -kUnbounded;
  int64_t high = kUnbounded;

  bool is_point() const { return low == high; }
  bool is_bounded() const { return low > -kUnbounded && high < kUnbounded; }
  friend bool operator==(const Range&, const Range&) = default;
};

Range operator+(Range a, Range b);
Range operator-(Range a, Range b);
Range operator*(Range a, Range b);
Range floor_div(Range a, Range b);
Range ceil_div(Range a, Range b);
Range modulo(Range a, Range b);  // for divisors above 0
Range smaller(Range a, Range b);
Range larger(Range a, Range b);
Range hull(Range a, Range b);

// `factor` is not known where it `is_symbolic` (a stride that is a size).
struct Term {
  SymbolId symbol;
  int64_t factor = 1;
  bool is_symbolic = false;
};

struct IndexForm {
  bool is_affine = true;  // else nothing below counts
  bool is_exact = true;   // no symbolic factors, and nothing was dropped from the sum
  int64_t constant = 0;
  std::vector<Term> terms;  // by symbol, each once

  int64_t factor(SymbolId symbol) const;  // 0: not in the sum
};

IndexForm add(const IndexForm& a, const IndexForm& b, int64_t factor_of_b = 1);
IndexForm scale(const IndexForm& a, int64_t factor);
inline IndexForm not_affine() { return {.is_affine = false, .is_exact = false}; }

}  // namespace kerf::triton
