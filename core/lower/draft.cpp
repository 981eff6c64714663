#include "lower/draft.h"

#include <algorithm>

#include "loop/walk.h"
#include "sym/simplify.h"

namespace kerf::lower {

namespace {

// The sizes that a kernel mentions, in the program's order.
std::vector<loop::Size> sizes_in(loop::Kernel& kernel, const std::vector<loop::Size>& sizes) {
  std::vector<sym::Expr> symbols;
  for (const loop::Buffer& buffer : kernel.buffers)
    for (sym::Expr extent : buffer.shape) sym::collect_symbols(extent, symbols);
  loop::rewrite_expressions(kernel, [&](sym::Expr expr) {
    sym::collect_symbols(expr, symbols);
    return expr;
  });
  std::vector<loop::Size> used;
  for (const loop::Size& size : sizes)
    if (std::ranges::find(symbols, size.symbol) != symbols.end()) used.push_back(size);
  return used;
}

}  // namespace

KernelDraft::KernelDraft(Lowering& lowering, graph::NodeId origin, const std::string& name)
    : lowering_(lowering),
      builder_(lowering.context, lowering.kernel_names.unique(name)),
      facts_(lowering.facts) {
  graph::SourceId source = lowering.graph.nodes[origin].source;
  if (source.valid()) sources_.push_back(lowering.graph.sources[source]);
}

Position KernelDraft::open_loops(std::span<const sym::Expr> shape) {
  Position position;
  for (sym::Expr extent : shape) {
    loop::AxisId axis = builder_.add_axis(fmt::format("i{}", loops_++), extent);
    builder_.open_loop(axis);
    position.push_back(builder_.symbol(axis));
    facts_.set_extent(position.back(), extent);
  }
  return position;
}

Position KernelDraft::open_reduce(std::span<const sym::Expr> extents) {
  Position position;
  std::vector<loop::AxisId> axes;
  for (sym::Expr extent : extents) {
    axes.push_back(builder_.add_axis(fmt::format("r{}", axes.size()), extent));
    position.push_back(builder_.symbol(axes.back()));
    facts_.set_extent(position.back(), extent);
  }
  builder_.open_reduce(std::move(axes));
  return position;
}

loop::ValueId KernelDraft::read(graph::ValueId value, const Position& position, std::optional<Mask> mask) {
  const Place& place = lowering_.places[value];
  const graph::TensorType& type = lowering_.graph.type(value);
  CHECK(position.size() == type.rank(), "a position of rank {} in a value of rank {}", position.size(),
        type.rank());
  if (const auto* strided = std::get_if<Strided>(&place)) return load(*strided, position, mask);
  if (const auto* mapped = std::get_if<Mapped>(&place)) {
    const graph::Node& view = lowering_.graph.nodes[mapped->view];
    if (view.op == graph::Op::window) return read_window(*this, view, position, mask);
    return read(view.operands[0], source_position(lowering_.graph, view, position, facts_), mask);
  }
  if (const auto* uniform = std::get_if<Uniform>(&place))
    return select(mask, builder_.constant(convert(uniform->value, type.dtype)));
  const auto* iota = std::get_if<Iota>(&place);
  CHECK(iota, "a value is read before it is lowered");
  sym::Expr element = sym::simplify(iota->start + iota->step * position[0], facts_);
  return select(mask, builder_.cast(builder_.index(element), type.dtype));
}

loop::ValueId KernelDraft::read_broadcast(graph::ValueId value, const Position& position) {
  return read(value, broadcast_position(lowering_.graph.type(value).shape, position));
}

loop::ValueId KernelDraft::load(const Strided& place, const Position& position, std::optional<Mask> mask) {
  loop::BufferId buffer = bind(place.buffer, loop::BufferMode::in);
  sym::Expr index = address(place, position);
  if (!mask) return builder_.load(buffer, index);
  return builder_.load(buffer, index, mask->condition, mask->other);
}

loop::ValueId KernelDraft::select(std::optional<Mask> mask, loop::ValueId value) {
  if (!mask) return value;
  return builder_.apply(ops::ScalarOp::where, {mask->condition, value, mask->other});
}

sym::Expr KernelDraft::checked_index(loop::ValueId index, sym::Expr bound, bool wrap) {
  ops::ScalarOp check = wrap ? ops::ScalarOp::wrap_index : ops::ScalarOp::check_index;
  loop::ValueId wide = builder_.cast(index, DType::i64);
  sym::Expr expr = builder_.as_expr(builder_.apply(check, {wide, builder_.index(bound)}));
  facts_.set_extent(expr, bound);
  return expr;
}

std::optional<loop::ValueId> KernelDraft::has_elements(std::span<const sym::Expr> bounds) {
  std::optional<loop::ValueId> condition;
  sym::Expr zero = lowering_.context.constant(0);
  for (sym::Expr extent : bounds) {
    if (sym::provably_less(zero, extent, facts_)) continue;
    loop::ValueId positive =
        builder_.apply(ops::ScalarOp::gt, {builder_.index(extent), builder_.index(zero)});
    condition = condition ? builder_.apply(ops::ScalarOp::and_, {*condition, positive}) : positive;
  }
  return condition;
}

loop::ValueId KernelDraft::read_checked(graph::ValueId value, const Position& position,
                                        std::span<const sym::Expr> bounds) {
  std::optional<loop::ValueId> condition = has_elements(bounds);
  if (!condition) return read(value, position);
  return read(value, position, Mask{*condition, builder_.constant(lowering_.graph.type(value).dtype, 0)});
}

loop::BufferId KernelDraft::bind(target::BufferIndex buffer, loop::BufferMode mode) {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i] != buffer) continue;
    CHECK(builder_.kernel().buffers[bound_[i]].mode == mode, "{} is bound in two modes in kernel {}",
          lowering_.program.buffers[buffer].name, builder_.kernel().name);
    return bound_[i];
  }
  const loop::ProgramBuffer& info = lowering_.program.buffers[buffer];
  arguments_.push_back(buffer);
  bound_.push_back(builder_.add_buffer(info.name, info.dtype, lowering_.buffer_shapes[buffer], mode));
  return bound_.back();
}

sym::Expr KernelDraft::address(const Strided& place, const Position& position) const {
  return sym::simplify(place.offset + linear_index(lowering_.context, position, place.strides), facts_);
}

void KernelDraft::store(const Strided& target, const Position& position, loop::ValueId value,
                        loop::BufferMode mode, loop::StoreMode store_mode) {
  builder_.store(bind(target.buffer, mode), address(target, position), value, store_mode);
}

void KernelDraft::finish() {
  for (int i = 0; i < loops_; ++i) builder_.close_loop();
  loop::Kernel kernel = builder_.finish();
  kernel.sizes = sizes_in(kernel, lowering_.program.sizes);
  kernel.sources = std::move(sources_);
  lowering_.program.steps.emplace_back(loop::Launch{std::move(kernel), std::move(arguments_)});
}

}  // namespace kerf::lower
