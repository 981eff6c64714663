#pragma once
// Windows in formulas: what pools, and operations like them, look at along the last dimensions of a value. Results have
// the dimensions [.., count.., extent..]; terms of fewer dimensions broadcast against them.
#include <vector>

#include "graph/term.h"

namespace kerf::graph {

// Where the windows over one dimension are: `count` of them, of `extent` elements each; see `window` in graph_ops.def.
struct Windows {
  sym::Expr count;
  sym::Expr extent;
  sym::Expr scale, shift, divisor, dilation;
};

// Windows over the last dimensions of x.
Term window(const Term& x, const std::vector<Windows>& windows, double outside);

// The last `count` dimensions.
std::vector<int64_t> window_dims(const Term& windowed, size_t count);
std::vector<sym::Expr> last_sizes(const TensorType& type, size_t count);

// The term with its dimensions at these places of `rank`, the others of one element.
Term placed(const Term& term, const std::vector<size_t>& dims, size_t rank);

// What windows over dimension `d` of `windows` see of start + step * position, against windows over all of them.
Term window_positions(Builder& builder, const std::vector<Windows>& windows, size_t d, sym::Expr size,
                      sym::Expr start, sym::Expr step, double outside);

// The positions 0, 1, ... along dimension `d` of `rank`.
Term own_positions(Builder& builder, sym::Expr size, size_t d, size_t rank);

// An upper bound of the length of intervals [floor(i * a / b), ceil((i + 1) * a / b)), the least where a and b are
// known.
sym::Expr longest_part(sym::Expr a, sym::Expr b);

// Outside every dimension.
constexpr double kNoPosition = 0x1p60;

}  // namespace kerf::graph
