#include "codegen/triton/transfer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "axis/linear.h"
#include "codegen/triton/emission.h"
#include "sym/simplify.h"

namespace kerf::codegen::triton {

using loop::BufferId;
using sym::Expr;

namespace {

class Planner {
 public:
  Planner(Emission& e, BufferId buffer, Expr place, bool is_store)
      : e_(e), buffer_(buffer), place_(place), is_store_(is_store) {
    result_.index = place;
    for (const Dim& dim : e.dims) result_.names.push_back(dim.axis.name);
  }

  Transfer run() {
    if (e_.dialect != Dialect::ascend || e_.dims.empty() || e_.dims.back().axis.lanes == 1) return result_;
    const size_t last = e_.dims.size() - 1;
    std::optional<int64_t> stride = stride_over(last);
    if (!stride || *stride == 0 || *stride == 1) return result_;
    for (size_t d = 0; d < last; ++d)
      if (stride_over(d) == 1 && is_good_row(e_.dims[d].axis)) return permute(d), result_;
    if (*stride == 2) pair(last);
    return result_;
  }

 private:
  Expr symbol(size_t dim) const { return e_.coordinates.symbol(e_.kernel, e_.dims[dim].coordinate); }

  // Nothing where it is not the same everywhere, or not a number.
  std::optional<int64_t> stride_over(size_t dim) const {
    auto stride = axis::stride_over(place_, symbol(dim));
    return stride && stride->is_constant() ? std::optional(stride->constant()) : std::nullopt;
  }

  // Pieces of longer rows end where a transfer may begin.
  bool is_good_row(const TileAxis& axis) const {
    int64_t bytes = axis.lanes * byte_size(e_.kernel.buffers[buffer_].dtype);
    return axis.lanes > 1 && (axis.whole || bytes % kTransferBytes == 0);
  }

  Lanes& lanes(size_t dim, size_t place, bool is_paired) {
    for (Lanes& known : e_.lanes)
      if (known.dim == dim && known.place == place && known.is_paired == is_paired) return known;
    std::string name = e_.names.give(e_.dims[dim].axis.name + (is_paired ? "_pair" : "_across"));
    Expr symbol = e_.kernel.context->symbol(name, sym::SymbolKind::axis);
    return e_.lanes.emplace_back(dim, place, is_paired, std::move(name), symbol);
  }

  // Dimensions by falling stride, `contiguous` last; as they are where a stride is not known.
  void permute(size_t contiguous) {
    std::vector<size_t> order;
    bool are_known = true;
    for (size_t d = 0; d < e_.dims.size(); ++d) {
      if (d != contiguous) order.push_back(d);
      are_known = are_known && stride_over(d).has_value();
    }
    if (are_known)
      std::ranges::stable_sort(order, std::greater{}, [&](size_t d) {
        int64_t stride = *stride_over(d);
        return stride == 0 ? std::numeric_limits<int64_t>::max() : stride;
      });
    order.push_back(contiguous);
    std::vector<sym::Substitution> moved;
    for (size_t i = 0; i < order.size(); ++i) {
      if (order[i] == i || !sym::mentions(place_, symbol(order[i]))) continue;
      const Lanes& along = lanes(order[i], i, false);
      moved.push_back({symbol(order[i]), along.symbol});
      result_.names[order[i]] = along.name;
    }
    result_.index = sym::substitute(place_, moved);
    result_.order = std::move(order);
  }

  Expr at(int64_t distance) const { return sym::simplify(place_ + distance, e_.facts); }

  void pair(size_t last) {
    DType dtype = e_.kernel.buffers[buffer_].dtype;
    if (dtype == DType::b1 || byte_size(dtype) == 8) return;
    std::optional<size_t> half = is_store_ ? half_written() : half_read();
    if (!half) return;
    const Lanes& along = lanes(last, last, true);
    Expr zero = e_.kernel.context->constant(0);
    std::vector<sym::Substitution> without{{symbol(last), zero}};
    auto first = at(-static_cast<int64_t>(*half));
    result_.index = sym::simplify(sym::substitute(first, without), e_.facts) + along.symbol;
    result_.names[last] = along.name;
    result_.first = first;
    result_.half = *half;
    result_.is_paired = true;
  }

  // Pairs begin where a run of neighbours begins.
  std::optional<size_t> half_read() {
    if (e_.kernel.buffers[buffer_].mode != loop::BufferMode::in) return std::nullopt;
    auto is_read = [&](int64_t distance) { return e_.places.read.contains({buffer_, at(distance).node()}); };
    size_t before = 0;
    while (is_read(-static_cast<int64_t>(before) - 1)) ++before;
    if (before % 2 == 1) return 1;
    if (is_read(1)) return 0;
    // A single one: with a neighbour that is there in any case, or without the last neighbour.
    auto range = sym::range_of(place_, e_.facts);
    if (before > 0 || (range.lo && *range.lo % 2 == 1)) return 1;
    Expr count = loop::element_count(e_.kernel, buffer_);
    bool is_there =
        range.hi && sym::provably_less(e_.kernel.context->constant(*range.hi + 1), count, e_.facts);
    result_.is_cut = !is_there;
    return 0;
  }

  // Both of a pair are written in one block, each once.
  std::optional<size_t> half_written() {
    auto written = [&](int64_t distance) -> const std::vector<const loop::Stmt*>* {
      auto found = e_.places.written.find({buffer_, at(distance).node()});
      return found == e_.places.written.end() ? nullptr : &found->second;
    };
    const auto* here = written(0);
    size_t before = 0;
    while (written(-static_cast<int64_t>(before) - 1)) ++before;
    const auto* other = written(before % 2 == 1 ? -1 : 1);
    if (!here || !other || here->size() != 1 || *here != *other) return std::nullopt;
    return before % 2;
  }

  Emission& e_;
  BufferId buffer_;
  Expr place_;
  bool is_store_;
  Transfer result_;
};

}  // namespace

void plan_transfers(Emission& e) {
  if (e.dialect != Dialect::ascend || e.dims.empty()) return;
  loop::walk(e.kernel.body, [&](const loop::Stmt& stmt, const loop::Path& path) {
    if (const auto* store = std::get_if<loop::Store>(&stmt)) {
      if (e.kernel.buffers[store->buffer].mode == loop::BufferMode::local) return;
      if (added_to_column(e.kernel, *store)) return;
      auto& places = e.places.written[{store->buffer, over_coordinates(e, store->index).node()}];
      places.push_back(path.empty() ? nullptr : path.back());
    } else if (const auto* define = std::get_if<loop::Define>(&stmt)) {
      const loop::Value& value = e.kernel.values[define->value];
      if (value.kind == loop::ValueKind::load)
        e.places.read.insert({value.buffer, over_coordinates(e, value.index).node()});
    }
  });
  loop::for_each_access(e.kernel, [&](BufferId buffer, Expr index, const loop::Path&, bool is_store) {
    if (e.kernel.buffers[buffer].mode == loop::BufferMode::local) return;
    transfer_of(e, buffer, over_coordinates(e, index), is_store);
  });
}

Transfer transfer_of(Emission& e, BufferId buffer, Expr place, bool is_store) {
  return Planner(e, buffer, place, is_store).run();
}

std::string transfer_mask(const Emission& e, const Transfer& transfer, Dims dims) {
  std::vector<std::string> parts;
  Dims wanted = e.overhanging(dims);
  for (size_t d = 0; d < e.dims.size(); ++d) {
    bool is_pair = transfer.is_paired && d + 1 == e.dims.size();
    if (!(wanted & e.bit(d)) && !(is_pair && transfer.is_cut)) continue;
    const std::string& extent = e.dims[d].axis.extent;
    parts.push_back(fmt::format("{} < {}{}{}", transfer.names[d], is_pair ? "2 * " : "", extent,
                                is_pair && transfer.is_cut ? " - 1" : ""));
  }
  if (parts.size() < 2) return parts.empty() ? "" : parts[0];
  return fmt::format("({})", fmt::join(parts, ") & ("));
}

}  // namespace kerf::codegen::triton
