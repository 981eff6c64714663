#include "axis/coordinates.h"

#include <fmt/format.h>

#include <algorithm>

#include "axis/linear.h"
#include "loop/walk.h"
#include "sym/simplify.h"

namespace kerf::axis {

using loop::AxisId;
using sym::Expr;

namespace {

constexpr int64_t kUnknownExtent = 64;  // of a dynamic axis, for weights

bool has_loops(const loop::Block& block) {
  return std::any_of(block.begin(), block.end(),
                     [](const loop::Stmt& s) { return !loop::axes_of(s).empty(); });
}

class Finder {
 public:
  explicit Finder(const loop::Kernel& kernel) : kernel_(kernel) {
    result_.of = IdVector<AxisId, size_t>(kernel.axes.size());
  }

  Coordinates run() {
    const loop::Block* block = &kernel_.body;
    while (block->size() == 1 && std::holds_alternative<loop::Loop>(block->front())) {
      const auto& loop = std::get<loop::Loop>(block->front());
      add_new({loop.axis}, CoordinateKind::outer, false);
      block = &loop.body;
    }
    visit(*block);
    number();
    for (const Coordinate& coordinate : result_.list)
      for (AxisId axis : coordinate.axes)
        result_.to_symbols.push_back(
            {kernel_.axes[axis].symbol, kernel_.axes[coordinate.axes.front()].symbol});
    return std::move(result_);
  }

 private:
  void add_new(std::vector<AxisId> axes, CoordinateKind kind, bool folded) {
    const loop::Axis& first = kernel_.axes[axes.front()];
    result_.list.push_back({first.symbol.symbol().name, first.extent, kind, std::move(axes), folded});
  }

  void visit(const loop::Block& block) {
    for (const loop::Stmt& stmt : block) {
      const loop::Block* body = loop::body_of(stmt);
      if (!body) continue;
      std::vector<AxisId> nest(loop::axes_of(stmt).begin(), loop::axes_of(stmt).end());
      bool folds = std::holds_alternative<loop::Reduce>(stmt);
      if (!folds)
        while (body->size() == 1 && std::holds_alternative<loop::Loop>(body->front())) {
          nest.push_back(std::get<loop::Loop>(body->front()).axis);
          body = loop::body_of(body->front());
        }
      if (has_loops(*body)) {
        for (AxisId axis : nest) add_new({axis}, CoordinateKind::row, folds);
        visit(*body);
      } else {
        place(nest, folds);
      }
    }
  }

  // inner_[k]: the coordinates that are k-th from inside in some nest.
  void place(const std::vector<AxisId>& nest, bool folds) {
    if (inner_.size() < nest.size()) inner_.resize(nest.size());
    for (size_t k = 0; k < nest.size(); ++k) {
      AxisId axis = nest[nest.size() - 1 - k];
      std::vector<Coordinate>& level = inner_[k];
      auto same = std::find_if(level.begin(), level.end(),
                               [&](const Coordinate& c) { return c.extent == kernel_.axes[axis].extent; });
      if (same == level.end())
        same = level.insert(level.end(), {"", kernel_.axes[axis].extent, CoordinateKind::inner, {}, false});
      same->axes.push_back(axis);
      same->folded = same->folded || folds;
    }
  }

  void number() {
    std::vector<Coordinate> inner;
    for (size_t k = inner_.size(); k-- > 0;)
      for (Coordinate& coordinate : inner_[k]) inner.push_back(std::move(coordinate));
    for (size_t i = 0; i < inner.size(); ++i) {
      inner[i].name = inner.size() == 1 ? "r" : fmt::format("r{}", i);
      result_.list.push_back(std::move(inner[i]));
    }
    for (size_t i = 0; i < result_.list.size(); ++i)
      for (AxisId axis : result_.list[i].axes) result_.of[axis] = i;
  }

  const loop::Kernel& kernel_;
  Coordinates result_;
  std::vector<std::vector<Coordinate>> inner_;
};

struct Weighed {
  Expr index;  // over coordinates
  int64_t bytes = 0;
};

std::vector<Weighed> accesses_of(const loop::Kernel& kernel, const Coordinates& coordinates) {
  std::vector<Weighed> result;
  loop::for_each_access(
      kernel, [&](loop::BufferId buffer, Expr index, const loop::Path& path, bool is_store) {
        if (kernel.buffers[buffer].mode == loop::BufferMode::local) return;
        int64_t bytes = (is_store ? 2 : 1) * byte_size(kernel.buffers[buffer].dtype);
        // What rows are compared with, once a row: wide, but no reason to run along the rows.
        bool is_label = kernel.buffers[buffer].dtype == DType::i64;
        for (AxisId axis : loop::axes_of(path)) {
          if (is_label && !sym::mentions(index, kernel.axes[axis].symbol)) continue;
          Expr extent = kernel.axes[axis].extent;
          bytes *= extent.is_constant() ? std::max<int64_t>(extent.constant(), 1) : kUnknownExtent;
        }
        result.push_back({sym::substitute(index, coordinates.to_symbols), bytes});
      });
  return result;
}

}  // namespace

Coordinates coordinates_of(const loop::Kernel& kernel) { return Finder(kernel).run(); }

std::vector<size_t> tile_order(const loop::Kernel& kernel, const Coordinates& coordinates,
                               const std::vector<bool>& in_tile) {
  std::vector<size_t> order;
  for (size_t i = 0; i < coordinates.list.size(); ++i)
    if (in_tile[i]) order.push_back(i);
  if (order.size() < 2) return order;
  std::vector<Weighed> accesses = accesses_of(kernel, coordinates);
  std::stable_sort(accesses.begin(), accesses.end(),
                   [](const Weighed& a, const Weighed& b) { return a.bytes > b.bytes; });
  auto stride = [&](const Weighed& access, size_t coordinate) -> std::optional<int64_t> {
    auto found = stride_over(access.index, coordinates.symbol(kernel, coordinate));
    if (!found || !found->is_constant()) return std::nullopt;
    return found->constant();
  };
  auto contiguous = [&](size_t coordinate) {
    int64_t bytes = 0;
    for (const Weighed& access : accesses)
      if (stride(access, coordinate) == 1) bytes += access.bytes;
    return bytes;
  };
  // Of equals the one that is listed last: it is the innermost.
  size_t last = order[0];
  for (size_t coordinate : order)
    if (contiguous(coordinate) >= contiguous(last)) last = coordinate;
  std::erase(order, last);
  // Insertion by the first access that tells two coordinates apart; a stable order of the rest.
  auto before = [&](size_t a, size_t b) {
    for (const Weighed& access : accesses) {
      auto of_a = stride(access, a), of_b = stride(access, b);
      if (of_a && of_b && *of_a != 0 && *of_b != 0 && *of_a != *of_b) return *of_a > *of_b;
    }
    return false;
  };
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t k = i; k > 0 && before(order[k], order[k - 1]); --k) std::swap(order[k], order[k - 1]);
  order.push_back(last);
  return order;
}

}  // namespace kerf::axis
