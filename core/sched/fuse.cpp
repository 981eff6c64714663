#include "sched/fuse.h"

#include <algorithm>
#include <map>

#include "axis/canonical.h"
#include "loop/build.h"
#include "loop/renumber.h"
#include "sched/align.h"
#include "sched/mask_loads.h"
#include "sched/profit.h"
#include "sched/segments.h"
#include "sym/simplify.h"

namespace kerf::sched {

using loop::ValueId;
using sym::Expr;
using target::BufferIndex;

namespace {

constexpr int kRowScope = -1;  // outside the inner loops

class Fuser {
 public:
  Fuser(const loop::Program& program, const Group& group, const std::vector<bool>& members_only)
      : program_(program), group_(group), context_(*program.context), builder_(context_, kernel_name()) {
    for (size_t m = 0; m < group.members.size(); ++m) {
      for (const loop::Store& store : group.members[m].nest->stores) {
        BufferIndex buffer = program_buffer(group.members[m], store.buffer);
        made_[buffer] = {m, !members_only[buffer] && !group.members[m].is_copy};
      }
    }
  }

  FusedKernel run() {
    builder_.add_sizes(program_.sizes);
    declare_buffers();
    make_axes();
    segments_ = plan_segments(program_, group_, made_, lanes_per_row());
    for (loop::AxisId axis : outer_) builder_.open_loop(axis);
    if (!summed_.empty()) clear_columns();
    for (loop::AxisId axis : summed_) builder_.open_loop(axis);
    for (int loop = 0; loop <= segments_.loop_count; ++loop) {
      emit_rows(loop);
      if (loop < segments_.loop_count) emit_loop(loop);
    }
    for (size_t i = 0; i < outer_.size() + summed_.size(); ++i) builder_.close_loop();
    loop::Kernel kernel = builder_.finish();
    if (selects_) kernel = mask_loads(std::move(kernel));
    kernel = loop::remove_dead_values(kernel);
    for (const Member& member : group_.members)
      for (const std::string& source : member.nest->kernel->sources)
        if (std::find(kernel.sources.begin(), kernel.sources.end(), source) == kernel.sources.end())
          kernel.sources.push_back(source);
    return {std::move(kernel), std::move(arguments_)};
  }

 private:
  std::string kernel_name() const {
    std::string name;
    constexpr size_t kNamedMembers = 4;
    for (size_t m = 0; m < group_.members.size() && m < kNamedMembers; ++m)
      name += (m ? "_" : "") + group_.members[m].nest->kernel->name;
    if (group_.members.size() > kNamedMembers)
      name += "_and_" + std::to_string(group_.members.size() - kNamedMembers);
    return name;
  }

  const loop::Launch& launch(const Member& member) const {
    return std::get<loop::Launch>(program_.steps[member.step]);
  }
  BufferIndex program_buffer(const Member& member, loop::BufferId buffer) const {
    return launch(member).arguments[buffer.index];
  }

  loop::BufferId declare(const Member& member, loop::BufferId buffer, loop::BufferMode mode) {
    BufferIndex index = program_buffer(member, buffer);
    auto found = buffers_.find(index);
    if (found != buffers_.end()) return found->second;
    const loop::Buffer& old = member.nest->kernel->buffers[buffer];
    loop::BufferId id = builder_.add_buffer(program_.buffers[index].name, old.dtype, old.shape, mode);
    buffers_.emplace(index, id);
    arguments_.push_back(index);
    return id;
  }

  void declare_buffers() {
    for (const Member& member : group_.members)
      for (const NestLoad& load : member.nest->loads)
        if (!made_.contains(program_buffer(member, load.buffer)))
          declare(member, load.buffer, loop::BufferMode::in);
    for (const Member& member : group_.members)
      for (const loop::Store& store : member.nest->stores)
        if (made_.at(program_buffer(member, store.buffer)).stored)
          declare(member, store.buffer, loop::BufferMode::out);
  }

  // --- axes

  void make_axes() {
    axis::Domain domain{{}, accesses(), {}, {}, group_.facts};
    bool folds = std::any_of(group_.members.begin(), group_.members.end(),
                             [](const Member& m) { return m.nest->reduces(); });
    for (const RootAxis& root : group_.axes)
      if (!root.inner && !root.summed) domain.axes.push_back({root.symbol, root.extent, 0, false});
    for (const RootAxis& root : group_.axes)
      if (root.summed) domain.axes.push_back({root.symbol, root.extent, 2, true});
    for (const RootAxis& root : group_.axes)
      if (root.inner) domain.axes.push_back({root.symbol, root.extent, 1, folds});
    uint32_t counter = group_.next_symbol;
    axis::Canonical canonical = axis::canonicalize(
        domain, [&] { return context_.symbol("a" + std::to_string(counter++), sym::SymbolKind::axis); });
    facts_ = group_.facts;
    for (const axis::DomainAxis& a : canonical.axes) {
      facts_.set_extent(a.symbol, a.extent);
      if (a.binding == 1) {
        inner_.push_back({a.symbol, a.extent});
      } else {
        std::vector<loop::AxisId>& axes = a.binding == 2 ? summed_ : outer_;
        axes.push_back(
            builder_.add_axis(fmt::format("{}{}", a.binding == 2 ? "c" : "x", axes.size()), a.extent));
        outer_change_.push_back({a.symbol, builder_.symbol(axes.back())});
        facts_.set_extent(builder_.symbol(axes.back()), a.extent);
      }
    }
    canonical_map_ = std::move(canonical.map);
  }

  // Rows that run across memory are kept for as many outer iterations as there are lanes.
  int64_t lanes_per_row() const {
    constexpr int64_t kMostLanes = 64;
    auto contiguous = [&](Expr axis) {
      int64_t bytes = 0;
      for (const axis::DomainAccess& access : accesses()) {
        Expr index = sym::simplify(sym::substitute(access.index, canonical_map_), facts_);
        auto stride = axis::stride_over(index, axis);
        if (stride && stride->is_constant(1)) bytes += access.weight;
      }
      return bytes;
    };
    int64_t along = inner_.empty() ? 0 : contiguous(inner_.back().symbol);
    for (const sym::Substitution& outer : outer_change_)
      if (contiguous(outer.from) > along) return kMostLanes;
    return 1;
  }

  std::vector<axis::DomainAccess> accesses() const {
    std::vector<axis::DomainAccess> result;
    int64_t outer = 1, inner = 1;
    for (const RootAxis& root : group_.axes)
      (root.inner ? inner : outer) *= hinted(root.extent, group_.facts);
    for (const Member& member : group_.members) {
      const loop::Kernel& kernel = *member.nest->kernel;
      auto add = [&](Expr index, DType dtype, bool full, bool is_store) {
        int64_t weight = outer * (full ? inner : 1) * byte_size(dtype);
        result.push_back({on_root(member, index, group_.facts), weight, is_store});
      };
      auto add_values = [&](const std::vector<ValueId>& values, bool full) {
        for (ValueId id : values) {
          const loop::Value& value = kernel.values[id];
          if (value.kind == loop::ValueKind::load && made_.contains(program_buffer(member, value.buffer)))
            continue;
          if (value.index.valid()) add(value.index, value.dtype, full, false);
        }
      };
      add_values(member.nest->point_values, member.is_full);
      add_values(member.nest->kept_values, false);
      for (const loop::Store& store : member.nest->stores)
        if (made_.at(program_buffer(member, store.buffer)).stored)
          add(store.index, kernel.values[store.value].dtype, member.is_full && !member.nest->reduces(), true);
    }
    return result;
  }

  // --- emission

  // An index of a member's nest, where the builder stands: nest axes -> root -> canonical -> this loop's symbols.
  Expr place(const Member& member, Expr index, const std::map<ValueId, ValueId>& copied) {
    std::vector<sym::Substitution> values;
    std::vector<Expr> symbols;
    sym::collect_symbols(index, symbols);
    for (Expr symbol : symbols)
      if (symbol.symbol().kind == sym::SymbolKind::value)
        values.push_back({symbol, builder_.as_expr(copied.at(ValueId(symbol.symbol().value)))});
    std::vector<sym::Substitution> map = member.map;
    map.insert(map.end(), values.begin(), values.end());
    Expr result = sym::simplify(sym::substitute(index, map), facts_);
    result = sym::simplify(sym::substitute(result, canonical_map_), facts_);
    result = sym::substitute(result, outer_change_);
    return sym::substitute(result, inner_change_);
  }

  ValueId copy_load(const Member& member, const loop::Value& value, const std::map<ValueId, ValueId>& copied,
                    int scope) {
    BufferIndex buffer = program_buffer(member, value.buffer);
    std::optional<ValueId> mask, other;
    if (!value.operands.empty()) mask = copied.at(value.operands[0]), other = copied.at(value.operands[1]);
    if (made_.contains(buffer)) {
      ValueId passed = value_in(buffer, scope);
      selects_ = selects_ || mask;
      return mask ? builder_.apply(ops::ScalarOp::where, {*mask, passed, *other}) : passed;
    }
    loop::BufferId id = buffers_.at(buffer);
    Expr index = place(member, value.index, copied);
    if (mask) return builder_.load(id, index, *mask, *other);
    auto [found, fresh] = loads_.try_emplace({scope, buffer, index.node()}, ValueId());
    if (fresh) found->second = builder_.load(id, index);
    return found->second;
  }

  void copy_values(const Member& member, const std::vector<ValueId>& values,
                   std::map<ValueId, ValueId>& copied, int scope) {
    for (ValueId id : values) {
      const loop::Value& value = member.nest->kernel->values[id];
      switch (value.kind) {
        case loop::ValueKind::constant: copied[id] = builder_.constant(value.literal); break;
        case loop::ValueKind::index: copied[id] = builder_.index(place(member, value.index, copied)); break;
        case loop::ValueKind::load: copied[id] = copy_load(member, value, copied, scope); break;
        case loop::ValueKind::apply: copied[id] = copy_apply(value, copied); break;
        case loop::ValueKind::reduced: break;  // bound when the fold closes
      }
    }
  }

  ValueId copy_apply(const loop::Value& value, const std::map<ValueId, ValueId>& copied) {
    std::vector<ValueId> operands;
    for (ValueId operand : value.operands) operands.push_back(copied.at(operand));
    if (value.op == ops::ScalarOp::cast) return builder_.cast(operands[0], value.dtype);
    if (value.op == ops::ScalarOp::bitcast) return builder_.bitcast(operands[0], value.dtype);
    return builder_.apply(value.op, std::move(operands));
  }

  // The value of a buffer that a member writes, for a reader in `scope`.
  ValueId value_in(BufferIndex buffer, int scope) {
    const size_t producer = made_.at(buffer).member;
    const Member& from = group_.members[producer];
    bool per_row = !from.is_full || from.nest->reduces();
    auto found = values_.find({buffer, per_row ? kRowScope : scope});
    if (found != values_.end()) return found->second;
    const Placement& placement = segments_.placements[producer];
    CHECK(!per_row && (placement.travel == Travel::reload || placement.travel == Travel::local_row),
          "value of buffer {} is not there in loop {}", buffer, scope);
    ValueId value = placement.travel == Travel::reload
                        ? builder_.load(buffers_.at(buffer), place(from, store_of(from, buffer).index, {}))
                        : builder_.load(rows_.at(buffer), row_position());
    values_[{buffer, scope}] = value;
    return value;
  }

  const loop::Store& store_of(const Member& member, BufferIndex buffer) const {
    for (const loop::Store& store : member.nest->stores)
      if (program_buffer(member, store.buffer) == buffer) return store;
    UNREACHABLE("member does not store buffer {}", buffer);
  }

  // Makes the stored values of a member available in `scope` and writes those that must reach memory.
  void publish(const Member& member, const std::map<ValueId, ValueId>& copied, int scope, bool writes) {
    for (const loop::Store& store : member.nest->stores) {
      BufferIndex buffer = program_buffer(member, store.buffer);
      ValueId value = copied.at(store.value);
      values_[{buffer, scope}] = value;
      if (writes && made_.at(buffer).stored)
        builder_.store(buffers_.at(buffer), place(member, store.index, copied), value);
    }
  }

  void emit_rows(int slot) {
    for (size_t m = 0; m < group_.members.size(); ++m) {
      const Member& member = group_.members[m];
      if (member.is_full || segments_.placements[m].slot != slot) continue;
      std::map<ValueId, ValueId> copied;
      copy_values(member, member.nest->point_values, copied, kRowScope);
      publish(member, copied, kRowScope, true);
    }
  }

  void open_inner(int loop, bool folds) {
    std::vector<axis::AxisInfo> axes = inner_;
    if (axes.empty() && folds) axes.push_back({Expr(), context_.constant(1)});
    inner_axes_.clear();
    inner_change_.clear();
    for (size_t k = 0; k < axes.size(); ++k) {
      std::string name = axes.size() > 1 ? fmt::format("r{}_{}", loop, k) : fmt::format("r{}", loop);
      inner_axes_.push_back(builder_.add_axis(name, axes[k].extent));
      if (axes[k].symbol.valid())
        inner_change_.push_back({axes[k].symbol, builder_.symbol(inner_axes_.back())});
    }
    if (folds) {
      builder_.open_reduce(inner_axes_);
    } else {
      for (loop::AxisId axis : inner_axes_) builder_.open_loop(axis);
    }
  }

  Expr row_position() {
    Expr position = context_.constant(0);
    for (loop::AxisId axis : inner_axes_)
      position = position * builder_.kernel().axes[axis].extent + builder_.symbol(axis);
    return position;
  }

  void keep_row(const Member& member, const std::map<ValueId, ValueId>& copied) {
    Expr length = context_.constant(1);
    for (const axis::AxisInfo& axis : inner_) length = length * axis.extent;
    for (const loop::Store& store : member.nest->stores) {
      BufferIndex buffer = program_buffer(member, store.buffer);
      ValueId value = copied.at(store.value);
      loop::BufferId row = builder_.add_buffer(program_.buffers[buffer].name + "_row", builder_.dtype(value),
                                               {length}, loop::BufferMode::local);
      rows_.emplace(buffer, row);
      builder_.store(row, row_position(), value);
    }
  }

  // Rows of column sums begin as zeros.
  void clear_columns() {
    open_inner(segments_.loop_count, false);
    for (const Member& member : group_.members) {
      if (!member.sums_columns) continue;
      for (const loop::Store& store : member.nest->stores) {
        BufferIndex buffer = program_buffer(member, store.buffer);
        if (!made_.at(buffer).stored) continue;
        DType dtype = program_.buffers[buffer].dtype;
        ValueId zero = builder_.constant(ops::identity(ops::ReduceOp::sum, dtype));
        builder_.store(buffers_.at(buffer), place(member, store.index, {}), zero);
      }
    }
    for (size_t k = 0; k < inner_axes_.size(); ++k) builder_.close_loop();
    inner_change_.clear();
  }

  // One row's share. The rows of one sum run on one thread, so nothing here is atomic.
  void add_to_columns(const Member& member, const std::map<ValueId, ValueId>& copied) {
    for (const loop::Store& store : member.nest->stores) {
      BufferIndex buffer = program_buffer(member, store.buffer);
      if (!made_.at(buffer).stored) continue;
      for (const loop::Reduction& part : member.nest->parts) {
        if (part.result != store.value) continue;
        Expr index = place(member, store.index, copied);
        ValueId sum = builder_.load(buffers_.at(buffer), index);
        sum = builder_.apply(ops::ScalarOp::add, {sum, copied.at(part.yields[0])});
        builder_.store(buffers_.at(buffer), index, sum);
      }
    }
  }

  void emit_loop(int loop) {
    struct Fold {
      const Member* member;
      std::map<ValueId, ValueId> copied;
    };
    std::vector<Fold> folds;
    auto runs_here = [&](size_t m) {
      const std::vector<int>& loops = segments_.placements[m].loops;
      return std::find(loops.begin(), loops.end(), loop) != loops.end();
    };
    bool any_fold = false;
    for (size_t m = 0; m < group_.members.size(); ++m)
      any_fold =
          any_fold || (group_.members[m].nest->reduces() && !group_.members[m].sums_columns && runs_here(m));
    open_inner(loop, any_fold);
    std::vector<loop::KernelBuilder::Part> parts;
    for (size_t m = 0; m < group_.members.size(); ++m) {
      const Member& member = group_.members[m];
      if (!member.is_full || !runs_here(m)) continue;
      std::map<ValueId, ValueId> copied;
      copy_values(member, member.nest->point_values, copied, loop);
      if (member.sums_columns) {
        add_to_columns(member, copied);
      } else if (member.nest->reduces()) {
        for (const loop::Reduction& part : member.nest->parts) {
          std::vector<ValueId> yields;
          for (ValueId y : part.yields) yields.push_back(copied.at(y));
          parts.push_back({part.op, std::move(yields)});
        }
        folds.push_back({&member, std::move(copied)});
      } else {
        bool home = segments_.placements[m].home == loop;
        publish(member, copied, loop, home);
        if (home && segments_.placements[m].travel == Travel::local_row) keep_row(member, copied);
      }
    }
    if (!any_fold) {
      for (size_t k = 0; k < inner_axes_.size(); ++k) builder_.close_loop();
      inner_change_.clear();
      return;
    }
    std::vector<ValueId> results = builder_.close_reduce(parts);
    inner_change_.clear();
    size_t next = 0;
    for (Fold& fold : folds) {
      for (const loop::Reduction& part : fold.member->nest->parts) fold.copied[part.result] = results[next++];
      copy_values(*fold.member, fold.member->nest->kept_values, fold.copied, kRowScope);
      publish(*fold.member, fold.copied, kRowScope, true);
    }
  }

  const loop::Program& program_;
  const Group& group_;
  sym::Context& context_;
  loop::KernelBuilder builder_;
  MadeBuffers made_;
  Segments segments_;
  std::vector<BufferIndex> arguments_;
  std::map<BufferIndex, loop::BufferId> buffers_, rows_;
  std::vector<loop::AxisId> outer_, summed_, inner_axes_;
  std::vector<axis::AxisInfo> inner_;  // canonical inner axes
  std::vector<sym::Substitution> canonical_map_, outer_change_, inner_change_;
  sym::Facts facts_;
  bool selects_ = false;  // a value passed between members is read under a mask
  std::map<std::pair<BufferIndex, int>, ValueId> values_;
  std::map<std::tuple<int, BufferIndex, const sym::Node*>, ValueId> loads_;
};

}  // namespace

FusedKernel fuse(const loop::Program& program, const Group& group, const std::vector<bool>& members_only) {
  return Fuser(program, group, members_only).run();
}

}  // namespace kerf::sched
