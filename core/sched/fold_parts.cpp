// Profit of splitting folds: whether, and into how many parts.
#include <algorithm>
#include <cmath>

#include "sched/profit.h"
#include "sched/split_folds.h"
#include "sym/simplify.h"

namespace kerf::sched {

using axis::AxisInfo;
using sym::Expr;

namespace {

int64_t hinted_product(const std::vector<AxisInfo>& axes, const sym::Facts& facts) {
  int64_t product = 1;
  for (const AxisInfo& axis : axes) product *= std::max<int64_t>(hinted(axis.extent, facts), 0);
  return product;
}

bool walks_memory(const std::vector<NestLoad>& loads, const std::vector<AxisInfo>& axes) {
  for (const NestLoad& load : loads)
    for (const AxisInfo& axis : axes) {
      auto stride = axis::stride_over(load.index, axis.symbol);
      if (stride && stride->is_constant(1) && !axis.extent.is_constant(1)) return true;
    }
  return false;
}

// Grid steps that the fold has as it is (tile.cpp): rows along memory, or lanes of neighbouring kept elements.
int64_t steps_of(const Nest& nest, int64_t kept) {
  constexpr int64_t kLanes = 16;
  std::vector<NestLoad> loads = nest.loads;
  bool columns = walks_memory(loads, nest.kept) && !walks_memory(loads, nest.reduced);
  return columns ? (kept + kLanes - 1) / kLanes : kept;
}

// A product of floats has no compensation: in parts it would only round otherwise.
bool has_float_product(const Nest& nest) {
  return std::any_of(nest.parts.begin(), nest.parts.end(), [&](const loop::Reduction& part) {
    return part.op == ops::ReduceOp::prod && is_floating(nest.kernel->values[part.result].dtype);
  });
}

}  // namespace

std::vector<size_t> memory_order(const Nest& nest, const sym::Facts& facts) {
  std::vector<int64_t> strides(nest.reduced.size(), 0);
  for (const NestLoad& load : nest.loads)
    for (size_t a = 0; a < strides.size(); ++a)
      if (auto stride = axis::stride_over(load.index, nest.reduced[a].symbol))
        strides[a] = std::max(strides[a], std::abs(hinted(*stride, facts)));
  std::vector<size_t> order(strides.size());
  for (size_t a = 0; a < order.size(); ++a) order[a] = a;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  return order;
}

std::vector<int64_t> chunks_of(Expr extent, const sym::Facts& facts) {
  sym::Modulus modulus = sym::modulus_of(extent, facts);
  int64_t whole = extent.is_constant() ? extent.constant() : modulus.remainder == 0 ? modulus.modulus : 1;
  std::vector<int64_t> chunks = {1};
  for (int64_t c = 2; c * c <= whole; ++c) {
    if (whole % c != 0) continue;
    chunks.push_back(c);
    if (c * c != whole) chunks.push_back(whole / c);
  }
  return chunks;
}

std::optional<std::vector<Piece>> choose_parts(const Nest& nest, const sym::Facts& size_facts,
                                               const SplitLimits& limits) {
  if (has_float_product(nest)) return std::nullopt;
  int64_t kept = hinted_product(nest.kept, size_facts), folded = hinted_product(nest.reduced, size_facts);
  if (kept <= 0 || folded <= 0 || kept * folded < limits.min_elements) return std::nullopt;
  int64_t steps = steps_of(nest, kept);
  if (steps >= limits.busy_steps || kept * folded / steps < limits.min_step_elements) return std::nullopt;
  int64_t wanted = std::max<int64_t>({limits.wanted_steps / steps, kept * folded / limits.part_elements, 1});
  sym::Context& context = *nest.kernel->context;
  std::vector<Piece> pieces, best;
  for (const AxisInfo& axis : nest.reduced) pieces.push_back({context.constant(1), axis.extent});
  double best_ratio = 0;
  int64_t outer = 1;  // parts of the axes that are cut whole
  for (size_t a : memory_order(nest, size_facts)) {
    Expr extent = nest.reduced[a].extent;
    for (int64_t chunk : chunks_of(extent, size_facts)) {
      std::optional<Expr> parts = sym::exact_div(extent, context.constant(chunk), size_facts);
      if (!parts) continue;
      int64_t count = outer * hinted(*parts, size_facts);
      if (count < 2 || folded / count < limits.min_chunk) continue;
      double ratio = std::abs(std::log(static_cast<double>(count) / static_cast<double>(wanted)));
      if (!best.empty() && ratio >= best_ratio) continue;
      best = pieces;
      best[a] = {*parts, context.constant(chunk)};
      best_ratio = ratio;
    }
    pieces[a] = {extent, context.constant(1)};
    outer *= hinted(extent, size_facts);
  }
  if (best.empty()) return std::nullopt;
  return best;
}

}  // namespace kerf::sched
