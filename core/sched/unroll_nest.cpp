#include "sched/unroll_nest.h"

#include <algorithm>

#include "loop/build.h"
#include "ops/fold_step.h"
#include "sched/fold_known.h"
#include "sched/nest_copy.h"

namespace kerf::sched {

using axis::AxisInfo;
using loop::KernelBuilder;
using loop::ValueId;
using sym::Expr;

namespace {

class Unroller {
 public:
  Unroller(const Nest& nest, const Unrolling& unrolling)
      : nest_(nest),
        unrolling_(unrolling),
        cut_(nest.all_axes()[unrolling.axis].symbol),
        builder_(*nest.kernel->context, nest.kernel->name) {}

  loop::Kernel run() {
    builder_.add_sizes(nest_.kernel->sizes);
    for (const loop::Buffer& buffer : nest_.kernel->buffers)
      builder_.add_buffer(buffer.name, buffer.dtype, buffer.shape, buffer.mode);
    find_dependent();
    std::vector<loop::AxisId> kept = add_axes(nest_.kept), reduced = add_axes(nest_.reduced);
    for (loop::AxisId axis : kept) builder_.open_loop(axis);
    if (nest_.reduces()) builder_.open_reduce(reduced);
    make_copies();
    for (size_t part = 0; part < copies_.size(); ++part) copy(nest_.point_values, part);
    if (nest_.reduces()) close_fold();
    const bool is_folded = unrolling_.axis >= nest_.kept.size();
    for (size_t part = 0; part < (is_folded ? 1 : copies_.size()); ++part) {
      copy(nest_.kept_values, part);
      for (const loop::Store& store : nest_.stores)
        builder_.store(store.buffer, copies_[part].place(store.index), copies_[part].at(store.value));
    }
    for (size_t i = 0; i < kept.size(); ++i) builder_.close_loop();
    loop::Kernel kernel = builder_.finish();
    kernel.sources = nest_.kernel->sources;
    return fold_known(std::move(kernel));
  }

 private:
  // The axes in the new kernel; the one that is cut is the repetitions and the indices in a part.
  std::vector<loop::AxisId> add_axes(const std::vector<AxisInfo>& axes) {
    std::vector<loop::AxisId> result;
    auto add = [&](Expr old, Expr extent) {
      result.push_back(builder_.add_axis(old.symbol().name, extent));
      extents_.push_back({builder_.symbol(result.back()), extent});
      return builder_.symbol(result.back());
    };
    for (const AxisInfo& axis : axes) {
      if (axis.symbol != cut_) {
        bound_.push_back({axis.symbol, add(axis.symbol, axis.extent)});
        continue;
      }
      Expr start = builder_.integer(0);
      if (!unrolling_.times.is_constant(1))
        start = add(axis.symbol, unrolling_.times) * unrolling_.block * unrolling_.parts;
      start_ = start + add(axis.symbol, unrolling_.block);
    }
    return result;
  }

  void make_copies() {
    sym::Facts facts = loop::facts_of(nest_.kernel->sizes);
    for (const AxisInfo& axis : extents_) facts.set_extent(axis.symbol, axis.extent);
    for (int64_t part = 0; part < unrolling_.parts; ++part) {
      copies_.emplace_back(builder_, nest_, facts, [](loop::BufferId buffer) { return buffer; });
      for (const sym::Substitution& s : bound_) copies_.back().bind(s.from, s.to);
      copies_.back().bind(cut_, start_ + unrolling_.block * part);
    }
  }

  // The values that differ among the parts.
  void find_dependent() {
    const loop::Kernel& kernel = *nest_.kernel;
    dependent_ = IdVector<ValueId, bool>(kernel.values.size());
    auto look_at = [&](ValueId id) {
      const loop::Value& value = kernel.values[id];
      bool depends = value.index.valid() && sym::mentions(value.index, cut_);
      for (ValueId used : loop::operands_of(value)) depends = depends || dependent_[used];
      dependent_[id] = depends;
    };
    for (ValueId id : nest_.point_values) look_at(id);
    for (const loop::Reduction& fold : nest_.parts)
      dependent_[fold.result] = std::ranges::any_of(fold.yields, [&](ValueId y) { return dependent_[y]; });
    for (ValueId id : nest_.kept_values) look_at(id);
  }

  void copy(const std::vector<ValueId>& values, size_t part) {
    for (ValueId id : values) {
      if (part > 0 && !dependent_[id]) {
        copies_[part].set(id, copies_[0].at(id));
      } else {
        copies_[part].copy({id});
      }
    }
  }

  void close_fold() {
    const bool is_folded = unrolling_.axis >= nest_.kept.size();
    std::vector<KernelBuilder::Part> folds;
    for (size_t part = 0; part < (is_folded ? 1 : copies_.size()); ++part) {
      for (const loop::Reduction& fold : nest_.parts) {
        std::vector<ValueId> yields;
        for (ValueId yield : fold.yields) yields.push_back(copies_[part].at(yield));
        if (is_folded)
          for (size_t other = 1; other < copies_.size(); ++other)
            yields[0] =
                builder_.apply(*ops::step_of(fold.op), {yields[0], copies_[other].at(fold.yields[0])});
        folds.push_back({fold.op, std::move(yields)});
      }
    }
    std::vector<ValueId> results = builder_.close_reduce(folds);
    for (size_t part = 0; part < copies_.size(); ++part)
      for (size_t n = 0; n < nest_.parts.size(); ++n)
        copies_[part].set(nest_.parts[n].result, results[is_folded ? n : part * nest_.parts.size() + n]);
  }

  const Nest& nest_;
  const Unrolling& unrolling_;
  Expr cut_, start_;  // the axis, and its value in the first part
  KernelBuilder builder_;
  std::vector<sym::Substitution> bound_;
  std::vector<AxisInfo> extents_;
  std::vector<NestCopy> copies_;  // per part
  IdVector<ValueId, bool> dependent_;
};

}  // namespace

bool can_unroll(const Nest& nest, size_t axis) {
  if (axis < nest.kept.size()) return true;
  return std::ranges::all_of(nest.parts, [&](const loop::Reduction& fold) {
    std::optional<ops::ScalarOp> step = ops::step_of(fold.op);
    DType dtype = nest.kernel->values[fold.yields[0]].dtype;
    const DType both[] = {dtype, dtype};
    return step && ops::result_dtype(*step, both) == dtype;
  });
}

loop::Kernel unroll(const Nest& nest, const Unrolling& unrolling) { return Unroller(nest, unrolling).run(); }

}  // namespace kerf::sched
