#include "sched/tile_kernel.h"

#include <algorithm>
#include <bit>
#include <set>

#include "axis/coordinates.h"
#include "axis/linear.h"
#include "loop/renumber.h"
#include "loop/walk.h"
#include "sched/outer.h"
#include "sched/profit.h"
#include "sched/split_boxes.h"
#include "sym/simplify.h"

namespace kerf::sched {

using axis::CoordinateKind;
using loop::AxisId;
using loop::Role;
using sym::Expr;

namespace {

constexpr int64_t kSquareSide = 64;      // of a tile that is read and written along different coordinates
constexpr int64_t kColumnsAcross = 256;  // results side by side, where rows are folded into them
constexpr int64_t kEnough = 1024;        // elements; a tile of so many gets no further dimensions
constexpr int64_t kSmallestTile = 512;   // elements; less is not worth a program of its own

int64_t floor_power(int64_t n) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}
int64_t ceil_power(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

// The axes along which values differ that stand in addresses.
std::set<AxisId> address_axes(const loop::Kernel& kernel) {
  std::vector<loop::ValueId> open;
  loop::for_each_access(kernel, [&](loop::BufferId, Expr index, const loop::Path&, bool) {
    for (loop::ValueId id : loop::values_in(index)) open.push_back(id);
  });
  std::set<AxisId> axes;
  std::set<loop::ValueId> seen;
  while (!open.empty()) {
    loop::ValueId id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    const loop::Value& value = kernel.values[id];
    for (loop::ValueId operand : loop::operands_of(value)) open.push_back(operand);
    for (AxisId axis(0); value.index.valid() && axis < kernel.axes.end_id(); ++axis.index)
      if (sym::mentions(value.index, kernel.axes[axis].symbol)) axes.insert(axis);
  }
  return axes;
}

// Whether some inner axis is walked although the kernel goes over it more than once.
bool walks_rows(const loop::Kernel& kernel) {
  for (const axis::Coordinate& c : axis::coordinates_of(kernel).list) {
    if (c.kind != CoordinateKind::inner) continue;
    const loop::Axis& axis = kernel.axes[c.axes.front()];
    if (axis.role != Role::tile || !axis.extent.is_constant() || axis.extent.constant() > axis.lanes)
      return true;
  }
  return false;
}

}  // namespace

// The tilings of a box of the kernel.
class Tilings::Part {
 public:
  Part(loop::Kernel kernel, const TileLimits& limits, bool outer_is_parallel)
      : kernel_(std::move(kernel)),
        limits_(limits),
        coordinates_(axis::coordinates_of(kernel_)),
        facts_(loop::facts_of(kernel_)),
        address_axes_(address_axes(kernel_)) {
    for (AxisId axis : outer_chain(kernel_))
      if (outer_is_parallel || is_independent(kernel_, axis)) parallel_.push_back(axis);
    const size_t count = coordinates_.list.size();
    std::vector<bool> all(count);
    for (size_t c = 0; c < count; ++c) all[c] = may_tile(c);
    order_ = axis::tile_order(kernel_, coordinates_, all);
    for (const PlacedAccess& access : placed_accesses(kernel_)) {
      Expr index = sym::simplify(sym::substitute(access.index, coordinates_.to_symbols), facts_);
      for (size_t c = 0; c < count; ++c)
        strides_.push_back(axis::stride_over(index, coordinates_.symbol(kernel_, c)));
    }
    // What runs along memory cannot be walked index by index: it stays, and has no text.
    if (!limits.backwards && !order_.empty())
      std::erase_if(order_, [&, last = order_.back()](size_t c) { return c != last && runs_backwards(c); });
  }

  // Per coordinate, and whether they are within the limits.
  std::pair<std::vector<int64_t>, bool> blocks(const TileSizes& sizes) {
    limits_.sizes = sizes;
    budget_ = limits_.sizes.elements;
    blocks_.assign(coordinates_.list.size(), 0);
    if (order_.empty()) return {blocks_, true};
    assign_rows();
    assign_contiguous();
    for (size_t i = order_.size(); i-- > 0;)
      if (rank() < 2 || budget_ * kEnough > limits_.sizes.elements || folds(order_[i]))
        assign(order_[i], budget_);
    spread();
    if (blocks_[order_.back()] == 0) blocks_[order_.back()] = pad(order_.back(), 1);
    int64_t elements = 1;
    for (size_t c : order_) elements *= std::max<int64_t>(blocks_[c], 1);
    return {blocks_, elements <= limits_.sizes.elements};
  }

  loop::Kernel at(const std::vector<int64_t>& blocks) const {
    loop::Kernel result = kernel_;
    set_roles(result, blocks);
    result = reordered(std::move(result));
    return walks_rows(result) ? loop::renumber(recompute_rows(result)) : result;
  }

 private:
  int64_t extent(size_t c) const { return std::max<int64_t>(hinted(coordinates_.list[c].extent, facts_), 1); }
  bool runs_backwards(size_t c) const {
    for (size_t access = 0; access < accesses(); ++access)
      if (auto over = stride(access, c); over && sym::range_of(*over, facts_).hi.value_or(0) < 0) return true;
    return false;
  }
  bool is_constant(size_t c) const { return coordinates_.list[c].extent.is_constant(); }
  int rank() const {
    return static_cast<int>(std::count_if(blocks_.begin(), blocks_.end(), [](int64_t b) { return b > 1; }));
  }
  bool folds(size_t c) const { return coordinates_.list[c].folded; }
  bool is_last(size_t c) const { return c == order_.back(); }
  bool is_parallel(size_t c) const {
    const axis::Coordinate& coordinate = coordinates_.list[c];
    return coordinate.kind != CoordinateKind::outer ||
           std::find(parallel_.begin(), parallel_.end(), coordinate.axes.front()) != parallel_.end();
  }
  bool may_tile(size_t c) const { return is_parallel(c) && !is_looked_up_with(c); }

  // An index that an address is made of differs along it.
  bool is_looked_up_with(size_t c) const {
    return !limits_.looked_up && std::any_of(address_axes_.begin(), address_axes_.end(),
                                             [&](AxisId axis) { return coordinates_.of[axis] == c; });
  }

  // What blocks are multiples of: of coordinates along which memory is read or written.
  int64_t step(size_t c) const {
    return is_last(c) || reads_across(c, order_.back()) ? limits_.alignment : 1;
  }

  // A block that covers n: what the target can have.
  int64_t pad(size_t c, int64_t n) const {
    if (limits_.powers_of_two) return ceil_power(n);
    return is_last(c) ? (n + limits_.alignment - 1) / limits_.alignment * limits_.alignment : n;
  }

  // Rows that the kernel goes over several times stay on chip, if they can.
  void assign_rows() {
    int64_t row = 1;
    bool again = false, constant = true;
    for (size_t c : order_) {
      if (!is_inner(c)) continue;
      row *= pad(c, extent(c));
      again = again || coordinates_.list[c].axes.size() > 1 || has(CoordinateKind::row);
      constant = constant && is_constant(c);
    }
    if (!again || !constant || row > std::min(limits_.sizes.persistent_row, limits_.sizes.elements)) return;
    for (size_t c : order_)
      if (is_inner(c)) take(c, pad(c, extent(c)));
  }

  bool is_inner(size_t c) const { return coordinates_.list[c].kind == CoordinateKind::inner; }
  bool has(CoordinateKind kind) const {
    return std::any_of(coordinates_.list.begin(), coordinates_.list.end(),
                       [kind](const axis::Coordinate& c) { return c.kind == kind; });
  }

  // Coordinates along which some access is contiguous: the last, and what transposed accesses run along.
  void assign_contiguous() {
    std::vector<size_t> along;
    for (size_t access = 0; access < accesses(); ++access)
      for (size_t c : order_) {
        bool runs = runs_along(access, c) && extent(c) > 1;
        if (runs && std::find(along.begin(), along.end(), c) == along.end()) along.push_back(c);
      }
    const size_t last = order_.back();
    // A coordinate that runs along memory only inside a longer run of another access (a vector of row values) is no reason
    // for a square.
    bool square = along.size() > 1 && std::any_of(along.begin(), along.end(), [&](size_t c) {
                    return c != last && blocks_[c] == 0 && reads_across(c, last);
                  });
    bool folds_rows = false;
    for (size_t c : order_) folds_rows = folds_rows || (c != last && folds(c) && blocks_[c] == 0);
    int64_t most = budget_;
    if (square) most = kSquareSide;
    if (folds_rows && !is_inner(last)) most = std::min(most, kColumnsAcross);
    assign(last, most);
    if (!square) return;
    for (size_t c : along)
      if (reads_across(c, last)) assign(c, kSquareSide);
  }

  // Some access runs along c and strides over `last`.
  bool reads_across(size_t c, size_t last) const {
    for (size_t access = 0; access < accesses(); ++access)
      if (auto over = stride(access, last); runs_along(access, c) && over && !over->is_constant(0))
        return true;
    return false;
  }
  bool runs_along(size_t access, size_t c) const {
    auto along = stride(access, c);
    return along && along->is_constant(1);
  }
  size_t accesses() const {
    return coordinates_.list.empty() ? 0 : strides_.size() / coordinates_.list.size();
  }
  std::optional<Expr> stride(size_t access, size_t c) const {
    return strides_[access * coordinates_.list.size() + c];
  }

  void take(size_t c, int64_t block) {
    blocks_[c] = block;
    budget_ = std::max<int64_t>(budget_ / block, 1);
  }

  // At most `most` of the coordinate, if it has no block yet: all of it, or a part that divides it, or where it is much longer
  // than the tile a part that overhangs at the end.
  void assign(size_t c, int64_t most) {
    if (blocks_[c] > 0 || (!limits_.sizes.tile_rows && !is_inner(c) && has(CoordinateKind::inner))) return;
    most = std::min(most, budget_);
    if (folds(c)) most = std::min(most, limits_.folded);
    int64_t n = extent(c);
    if (is_constant(c) && pad(c, n) <= most) return take(c, pad(c, n));
    const int64_t by = step(c);
    if (!limits_.powers_of_two && is_constant(c))
      for (int64_t block = most / by * by; block >= std::max(most / 2, by + 1); block -= by)
        if (n % block == 0) return take(c, block);
    int64_t block = floor_power(most);
    if (is_constant(c) && !is_last(c))
      while (block > 1 && n % block != 0 && n < 4 * block) block /= 2;
    if (is_last(c)) block = std::max(block, floor_power(std::min(limits_.alignment, ceil_power(n))));
    if (block > 1) take(c, block);
  }

  // Smaller tiles where there are fewer than programs; outer coordinates only.
  void spread() {
    auto tiles = [&] {
      int64_t count = 1;
      for (size_t c = 0; c < coordinates_.list.size(); ++c)
        if (coordinates_.list[c].kind == CoordinateKind::outer)
          count *= (extent(c) + std::max<int64_t>(blocks_[c], 1) - 1) / std::max<int64_t>(blocks_[c], 1);
      return count;
    };
    auto elements = [&] {
      int64_t count = 1;
      for (size_t c : order_) count *= std::max<int64_t>(blocks_[c], 1);
      return count;
    };
    while (tiles() < limits_.programs && elements() > kSmallestTile) {
      // The largest, the last coordinate only when no other is left.
      std::optional<size_t> largest;
      for (size_t c : order_) {
        bool halves = coordinates_.list[c].kind == CoordinateKind::outer && blocks_[c] > 1 &&
                      blocks_[c] % (2 * step(c)) == 0;
        if (!halves) continue;
        if (!largest || (is_last(*largest) ? true : !is_last(c) && blocks_[c] > blocks_[*largest]))
          largest = c;
      }
      if (!largest) return;
      blocks_[*largest] /= 2;
    }
  }

  void set_roles(loop::Kernel& kernel, const std::vector<int64_t>& blocks) const {
    for (size_t c = 0; c < coordinates_.list.size(); ++c)
      for (AxisId axis : coordinates_.list[c].axes) {
        bool is_tile = blocks[c] > 1 || (blocks[c] == 1 && is_last(c));
        if (is_tile) {
          kernel.axes[axis].role = Role::tile;
          kernel.axes[axis].lanes = static_cast<int>(blocks[c]);
        } else if (coordinates_.list[c].kind == CoordinateKind::outer && is_parallel(c)) {
          kernel.axes[axis].role = Role::grid;
        }
      }
  }

  // Grid axes, then tiles, then what must run in order.
  static loop::Kernel reordered(loop::Kernel kernel) {
    std::vector<AxisId> chain = outer_chain(kernel);
    std::vector<AxisId> order = chain;
    std::stable_sort(order.begin(), order.end(), [&](AxisId a, AxisId b) {
      auto rank = [&](AxisId axis) {
        Role role = kernel.axes[axis].role;
        return role == Role::grid ? 0 : role == Role::tile ? 1 : 2;
      };
      return rank(a) < rank(b);
    });
    loop::Block* block = &kernel.body;
    for (AxisId axis : order) {
      auto& loop = std::get<loop::Loop>(block->front());
      loop.axis = axis;
      block = &loop.body;
    }
    return loop::renumber(kernel);
  }

  const loop::Kernel kernel_;
  TileLimits limits_;
  axis::Coordinates coordinates_;
  sym::Facts facts_;
  std::set<AxisId> address_axes_;
  std::vector<AxisId> parallel_;
  std::vector<std::optional<Expr>> strides_;  // of each access over each coordinate
  std::vector<size_t> order_;                 // of the coordinates that may be tiles
  std::vector<int64_t> blocks_;               // per coordinate; 0: none
  int64_t budget_ = 0;
};

Tilings::Tilings(const loop::Kernel& kernel, const TileLimits& limits, bool outer_is_parallel) {
  const loop::Kernel narrow = limits.doubles ? kernel : narrow_doubles(kernel);
  for (loop::Kernel& part : limits.masked_reads ? std::vector{narrow} : split_boxes(narrow))
    parts_.push_back(std::make_unique<Part>(std::move(part), limits, outer_is_parallel));
}

Tilings::~Tilings() = default;

Tilings::Blocks Tilings::blocks(const TileSizes& sizes) {
  Blocks result;
  for (auto& part : parts_) {
    auto [blocks, fits] = part->blocks(sizes);
    result.sizes.push_back(std::move(blocks));
    result.fits = result.fits && fits;
  }
  return result;
}

TiledKernel Tilings::at(const Blocks& blocks) const {
  TiledKernel result{.parts = {}, .fits = blocks.fits};
  for (size_t i = 0; i < parts_.size(); ++i) result.parts.push_back(parts_[i]->at(blocks.sizes[i]));
  return result;
}

TiledKernel tile_kernel(const loop::Kernel& kernel, const TileLimits& limits, bool outer_is_parallel) {
  Tilings tilings(kernel, limits, outer_is_parallel);
  return tilings.at(tilings.blocks(limits.sizes));
}

}  // namespace kerf::sched
