#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "codegen/llvm/emission.h"
#include "sym/text.h"

namespace kerf::codegen {

using loop::Kernel;

namespace {

constexpr int kMaxLanes = 256;

int64_t align_up(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

std::optional<Unsupported> check_value(const loop::Value& value, size_t id) {
  if (value.kind != loop::ValueKind::apply) return std::nullopt;
  if (ops::info(value.op).llvm.form != ops::LlvmForm::unsupported) return std::nullopt;
  return Unsupported{fmt::format("%{}: the cpu target has no code for {}", id, ops::to_text(value.op))};
}

std::optional<Unsupported> check_block(const Kernel& kernel, const loop::Block& block) {
  for (const loop::Stmt& statement : block) {
    std::optional<Unsupported> problem;
    if (std::holds_alternative<loop::Barrier>(statement)) {
      problem = Unsupported{"a barrier: the cpu target has none"};
    } else if (auto* inner = std::get_if<loop::Loop>(&statement)) {
      problem = check_block(kernel, inner->body);
    } else if (auto* reduce = std::get_if<loop::Reduce>(&statement)) {
      problem = check_block(kernel, reduce->body);
    } else if (auto* guard = std::get_if<loop::Guard>(&statement)) {
      problem = check_block(kernel, guard->body);
    }
    if (problem) return problem;
  }
  return std::nullopt;
}

// Marks what differs between the lanes of a vector loop. Only one vector axis is on any path, so an expression that
// mentions a vector axis varies wherever it is used.
struct Variation {
  const Kernel& kernel;
  std::vector<bool> varying;

  bool in_index(sym::Expr expr) const {
    std::vector<sym::Expr> symbols;
    sym::collect_symbols(expr, symbols);
    return std::any_of(symbols.begin(), symbols.end(), [&](sym::Expr s) {
      if (s.symbol().kind == sym::SymbolKind::value) return static_cast<bool>(varying[s.symbol().value]);
      if (s.symbol().kind == sym::SymbolKind::size) return false;
      return std::any_of(kernel.axes.begin(), kernel.axes.end(),
                         [&](const loop::Axis& axis) { return axis.symbol == s && is_vector_axis(axis); });
    });
  }

  bool of(const loop::Value& value) const {
    bool result = std::any_of(value.operands.begin(), value.operands.end(),
                              [&](loop::ValueId id) { return varying[id.index]; });
    if (value.index.valid()) result = result || in_index(value.index);
    return result;
  }

  // A reduction inside a vector loop varies with what it folds (extents never differ between lanes); one over the
  // vector axis itself ends in a scalar.
  void visit(const loop::Reduce& reduce) {
    visit(reduce.body);
    bool over_vector = std::any_of(reduce.axes.begin(), reduce.axes.end(),
                                   [&](loop::AxisId id) { return is_vector_axis(kernel.axes[id]); });
    for (const loop::Reduction& part : reduce.parts) {
      bool folds_varying = std::any_of(part.yields.begin(), part.yields.end(),
                                       [&](loop::ValueId id) { return varying[id.index]; });
      varying[part.result.index] = !over_vector && folds_varying;
    }
  }

  void visit(const loop::Block& block) {
    for (const loop::Stmt& statement : block) {
      if (auto* define = std::get_if<loop::Define>(&statement)) {
        varying[define->value.index] = of(kernel.values[define->value]);
      } else if (auto* inner = std::get_if<loop::Loop>(&statement)) {
        visit(inner->body);
      } else if (auto* reduce = std::get_if<loop::Reduce>(&statement)) {
        visit(*reduce);
      } else if (auto* guard = std::get_if<loop::Guard>(&statement)) {
        visit(guard->body);
      }
    }
  }
};

}  // namespace

std::optional<Unsupported> check_supported(const Kernel& kernel) {
  for (size_t i = 0; i < kernel.values.size(); ++i) {
    if (auto problem = check_value(kernel.values[loop::ValueId(i)], i)) return problem;
  }
  for (const loop::Axis& axis : kernel.axes) {
    bool fits = axis.lanes <= kMaxLanes && std::has_single_bit(static_cast<unsigned>(axis.lanes));
    if (axis.role == loop::Role::vector && !fits) {
      return Unsupported{fmt::format("axis {} of {} lanes: not a power of two up to {}",
                                     sym::to_text(axis.symbol), axis.lanes, kMaxLanes)};
    }
  }
  return check_block(kernel, kernel.body);
}

// Rows whose starts agree modulo 4096 make loads wait for unrelated stores (4K aliasing), so each start lies 512
// bytes further in the page than the one before.
LocalLayout place_locals(const Kernel& kernel) {
  constexpr int64_t kPage = 4096, kStep = 512;
  LocalLayout layout;
  int64_t stack_used = 0;
  int64_t count = 0;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    loop::BufferId id(i);
    const loop::Buffer& buffer = kernel.buffers[id];
    if (buffer.mode != loop::BufferMode::local) continue;
    LocalPlace place = {.buffer = id,
                        .elements = std::max<int64_t>(loop::element_count(kernel, id).constant(), 1)};
    int64_t bytes = align_up(place.elements * byte_size(buffer.dtype), kCacheLine);
    place.on_stack = stack_used + bytes <= kStackBytes;
    if (place.on_stack) {
      stack_used += bytes;
    } else {
      int64_t wanted = count++ * kStep % kPage;
      place.offset = layout.scratch_bytes + (wanted - layout.scratch_bytes % kPage + kPage) % kPage;
      layout.scratch_bytes = place.offset + bytes;
    }
    layout.places.push_back(place);
  }
  return layout;
}

std::vector<bool> varying_values(const Kernel& kernel) {
  Variation variation{kernel, std::vector<bool>(kernel.values.size())};
  variation.visit(kernel.body);
  return variation.varying;
}

}  // namespace kerf::codegen
