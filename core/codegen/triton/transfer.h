#pragma once
// How a tile is moved between memory and chip. Elements that do not lie side by side along the tile's last dimension take
// 32 bytes each on Ascend, so there
//   * x[2*i] and x[2*i + 1] are read together and split, and are joined before they are written:
//         x_pair = tl.load(x_ptr + i_pair)                          i_pair: twice the lanes of i
//         x, x_1 = tl.split(tl.reshape(x_pair, [BI, 2]))
//   * what runs along another dimension is moved in the order of memory, and permuted on chip:
//         x = tl.permute(tl.load(x_ptr + (64 * i_across + j_across)), (1, 0))
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "loop/kernel.h"
#include "loop/walk.h"

namespace kerf::codegen::triton {

struct Emission;

// On Ascend, what a transfer begins and ends at multiples of.
inline constexpr int kTransferBytes = 32;

// A dimension's indices for transfers: at another place among the tile's dimensions, or two for each one.
struct Lanes {
  size_t dim = 0;
  size_t place = 0;
  bool is_paired = false;
  std::string name;
  sym::Expr symbol;
};

struct Transfer {
  sym::Expr index;                 // over coordinates and the symbols of lanes
  std::vector<std::string> names;  // per dimension: of its indices
  std::vector<size_t> order;       // the tile's dimensions as they lie in memory; empty: in its own order
  // Of pairs:
  bool is_paired = false;
  size_t half = 0;      // which of the two is meant
  sym::Expr first;      // the place of the other's partner, over coordinates
  bool is_cut = false;  // the last pair has no second element
};

// What the kernel reads and writes, by which pairs are found.
struct Places {
  using Place = std::pair<loop::BufferId, const sym::Node*>;
  std::set<Place> read;
  std::map<Place, std::vector<const loop::Stmt*>> written;  // and the innermost loop around, or null
};

// Finds the places of the kernel, and gives names to the lanes that its transfers need.
void plan_transfers(Emission& e);

// Of one access; `place` is over coordinates.
Transfer transfer_of(Emission& e, loop::BufferId buffer, sym::Expr place, bool is_store);

// `(x0 < X0) & (i_pair < 2 * I)`, as Emission::mask.
std::string transfer_mask(const Emission& e, const Transfer& transfer, uint32_t dims);

}  // namespace kerf::codegen::triton
