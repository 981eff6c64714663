#include "sched/fold_halves.h"

#include <fmt/format.h>

#include <algorithm>

#include "sym/simplify.h"

namespace kerf::sched {

using axis::AxisInfo;
using loop::BufferMode;
using loop::KernelBuilder;
using loop::ValueId;
using ops::ReduceOp;
using ops::ScalarOp;
using sym::Expr;
using target::BufferIndex;

namespace {

// Where a kept point lies within the results of one part: as in the fold's own result if that is dense, so that both are
// walked in the same order.
Expr kept_position(const Nest& nest, sym::Facts facts) {
  sym::Context& context = *nest.kernel->context;
  for (const AxisInfo& axis : nest.kept) facts.set_extent(axis.symbol, axis.extent);
  Expr stored = nest.stores.front().index, count = context.constant(1);
  auto digits = axis::dense_digits(stored, nest.kept, facts);
  if (digits)
    for (const axis::Digit& digit : *digits) count = count * nest.kept[digit.axis].extent;
  bool whole = digits && sym::provably_equal(count, axis::extent_product(context, nest.kept), facts);
  return whole ? stored : axis::row_major(context, nest.kept);
}

// The folds that make the parts of one: an extremum's index travels with the extremum.
std::vector<KernelBuilder::Part> part_folds(ReduceOp op, const std::vector<ValueId>& yields) {
  if (!ops::info(op).has_index()) return {{op, yields}};
  bool is_max = ops::seeks_largest(op);
  ReduceOp index = ops::info(op).index_result ? op : is_max ? ReduceOp::argmax : ReduceOp::argmin;
  return {{is_max ? ReduceOp::first_max : ReduceOp::first_min, yields}, {index, yields}};
}

}  // namespace

std::string parts_name(const Nest& nest, const std::string& suffix) { return nest.kernel->name + suffix; }

Expr SplitFold::part_count() const {
  Expr count = nest.kernel->context->constant(1);
  for (const Piece& piece : pieces) count = count * piece.parts;
  return count;
}

Expr SplitFold::kept_count() const { return axis::extent_product(*nest.kernel->context, nest.kept); }

FoldHalves::FoldHalves(const loop::Program& before, loop::Program& program, std::string suffix)
    : before_(before),
      program_(program),
      suffix_(std::move(suffix)),
      context_(*before.context),
      facts_(loop::facts_of(before.sizes)) {}

// --- kernels under construction

FoldHalves::Draft FoldHalves::draft(const std::string& name, const std::vector<const Nest*>& nests) const {
  Draft fresh{KernelBuilder(context_, name), {}, {}};
  fresh.builder.add_sizes(before_.sizes);
  for (const Nest* nest : nests)
    for (const std::string& source : nest->kernel->sources)
      if (std::find(fresh.sources.begin(), fresh.sources.end(), source) == fresh.sources.end())
        fresh.sources.push_back(source);
  return fresh;
}

void FoldHalves::emit(Draft draft) {
  for (size_t i = 0; i < draft.open_loops; ++i) draft.builder.close_loop();
  loop::Kernel kernel = draft.builder.finish();
  kernel.sources = std::move(draft.sources);
  program_.steps.push_back(loop::Launch{std::move(kernel), std::move(draft.arguments)});
}

loop::BufferId FoldHalves::declare(Draft& draft, BufferIndex index, std::vector<Expr> shape,
                                   BufferMode mode) const {
  auto known = std::find(draft.arguments.begin(), draft.arguments.end(), index);
  if (known != draft.arguments.end())
    return loop::BufferId(static_cast<uint32_t>(known - draft.arguments.begin()));
  draft.arguments.push_back(index);
  const loop::ProgramBuffer& buffer = program_.buffers[index];
  return draft.builder.add_buffer(buffer.name, buffer.dtype, std::move(shape), mode);
}

loop::BufferId FoldHalves::parts(Draft& draft, const SplitFold& fold, BufferIndex buffer,
                                 BufferMode mode) const {
  return declare(draft, buffer, {fold.part_count(), fold.kept_count()}, mode);
}

ValueId FoldHalves::load(Draft& draft, const NestCopy& copy, const Element& element) const {
  loop::BufferId buffer =
      declare(draft, element.buffer, {program_.buffers[element.buffer].elements}, BufferMode::in);
  return draft.builder.load(buffer, copy.place(element.index));
}

NestCopy FoldHalves::copy_of(Draft& draft, const SplitFold& fold) const {
  return NestCopy(draft.builder, fold.nest, facts_, [this, &draft, &fold](loop::BufferId id) {
    const loop::Buffer& buffer = fold.nest.kernel->buffers[id];
    return declare(draft, launch(fold).arguments[id.index], buffer.shape, buffer.mode);
  });
}

BufferIndex FoldHalves::add_buffer(const SplitFold& fold, const std::string& suffix, DType dtype) {
  program_.buffers.push_back({.name = fold.nest.kernel->name + suffix,
                              .dtype = dtype,
                              .elements = fold.part_count() * fold.kept_count()});
  return static_cast<BufferIndex>(program_.buffers.size() - 1);
}

Expr FoldHalves::part_index(const SplitFold& fold, const NestCopy& copy, Expr part) const {
  return part * fold.kept_count() + copy.place(kept_position(fold.nest, facts_));
}

// --- first halves

FoldHalves::PartLoops FoldHalves::open_parts(Draft& draft, const SplitFold& fold) const {
  PartLoops loops{copy_of(draft, fold), {}, {}};
  auto axis = [&](const std::string& name, size_t i, Expr extent, bool is_loop) {
    loop::AxisId id = draft.builder.add_axis(fmt::format("{}{}", name, i), extent);
    loops.copy.know_extent(draft.builder.symbol(id), extent);
    if (is_loop) {
      draft.builder.open_loop(id);
      ++draft.open_loops;
    } else {
      loops.folded.push_back(id);
    }
    return draft.builder.symbol(id);
  };
  for (size_t k = 0; k < fold.nest.kept.size(); ++k)
    loops.copy.bind(fold.nest.kept[k].symbol, axis("i", k, fold.nest.kept[k].extent, true));
  Expr part = context_.constant(0);
  for (size_t a = 0; a < fold.pieces.size(); ++a) {
    const Piece& piece = fold.pieces[a];
    Expr position = context_.constant(0);
    if (!piece.parts.is_constant(1)) {
      position = axis("p", a, piece.parts, true);
      part = part * piece.parts + position;
    }
    position = position * piece.chunk;
    if (!piece.chunk.is_constant(1)) position = position + axis("r", a, piece.chunk, false);
    loops.copy.bind(fold.nest.reduced[a].symbol, position);
  }
  loops.index = part_index(fold, loops.copy, part);
  return loops;
}

void FoldHalves::emit_parts(SplitFold& fold) {
  Draft draft = this->draft(parts_name(fold.nest, suffix_), {&fold.nest});
  PartLoops loops = open_parts(draft, fold);
  draft.builder.open_reduce(loops.folded);
  loops.copy.copy(fold.nest.point_values);
  std::vector<KernelBuilder::Part> folds;
  for (const loop::Reduction& reduction : fold.nest.parts) {
    std::vector<ValueId> yields;
    for (ValueId yield : reduction.yields) yields.push_back(loops.copy.at(yield));
    fold.parts.emplace_back();
    for (KernelBuilder::Part& one : part_folds(reduction.op, yields)) {
      bool is_index = ops::info(one.op).index_result;
      DType dtype = is_index ? DType::i64 : draft.builder.dtype(one.yields[0]);
      std::string name = is_index ? "_part_indices" : suffix_;
      if (fold.parts.size() > 1) name += fmt::format("_{}", fold.parts.size() - 1);
      fold.parts.back().push_back(add_buffer(fold, name, dtype));
      folds.push_back(std::move(one));
    }
  }
  std::vector<ValueId> results = draft.builder.close_reduce(folds);
  size_t next = 0;
  for (const std::vector<BufferIndex>& buffers : fold.parts)
    for (BufferIndex buffer : buffers)
      draft.builder.store(parts(draft, fold, buffer, BufferMode::out), loops.index, results[next++]);
  emit(std::move(draft));
}

// The means of the parts.
void FoldHalves::emit_shift(SplitFold& fold, const SplitFold& sum) {
  Draft draft = this->draft(fold.nest.kernel->name + "_part_means", {&fold.nest});
  PartLoops loops = open_parts(draft, fold);
  // The parts of the sum lie in the order of its own kept axes.
  ValueId total = draft.builder.load(parts(draft, sum, sum.parts[0][0], BufferMode::in), loops.index);
  int64_t elements = 1;
  for (const Piece& piece : fold.pieces) elements *= piece.chunk.constant();
  ValueId mean = draft.builder.apply(
      ScalarOp::div,
      {total, draft.builder.constant(draft.builder.dtype(total), static_cast<double>(elements))});
  fold.shift = add_buffer(fold, "_part_means", draft.builder.dtype(total));
  draft.builder.store(parts(draft, fold, fold.shift, BufferMode::out), loops.index, mean);
  emit(std::move(draft));
}

void FoldHalves::emit_parts_of_squares(SplitFold& fold, const SplitFold& sum) {
  emit_shift(fold, sum);
  Draft draft = this->draft(parts_name(fold.nest, suffix_), {&fold.nest});
  PartLoops loops = open_parts(draft, fold);
  draft.builder.open_reduce(loops.folded);
  ValueId value = load(draft, loops.copy, fold.squares->value);
  ValueId mean = draft.builder.load(parts(draft, fold, fold.shift, BufferMode::in), loops.index);
  ValueId deviation = draft.builder.apply(ScalarOp::sub, {value, mean});
  ValueId square = draft.builder.apply(ScalarOp::mul, {deviation, deviation});
  std::vector<ValueId> results =
      draft.builder.close_reduce({{ReduceOp::sum, {deviation}}, {ReduceOp::sum, {square}}});
  fold.parts.emplace_back();
  for (size_t i = 0; i < results.size(); ++i) {
    fold.parts[0].push_back(
        add_buffer(fold, i == 0 ? "_part_deviations" : "_parts", draft.builder.dtype(value)));
    draft.builder.store(parts(draft, fold, fold.parts[0][i], BufferMode::out), loops.index, results[i]);
  }
  emit(std::move(draft));
}

// --- second halves

void FoldHalves::emit_joins(const std::vector<SplitFold>& folds) {
  std::string name;
  std::vector<const Nest*> nests;
  for (const SplitFold& fold : folds) {
    name += (name.empty() ? "" : "_") + fold.nest.kernel->name;
    nests.push_back(&fold.nest);
  }
  Draft draft = this->draft(name, nests);
  std::vector<NestCopy> copies;
  for (const SplitFold& fold : folds) copies.push_back(copy_of(draft, fold));
  for (size_t k = 0; k < folds[0].nest.kept.size(); ++k) {
    Expr extent = folds[0].nest.kept[k].extent;
    loop::AxisId axis = draft.builder.add_axis(fmt::format("i{}", k), extent);
    for (size_t f = 0; f < folds.size(); ++f) {
      copies[f].know_extent(draft.builder.symbol(axis), extent);
      copies[f].bind(folds[f].nest.kept[k].symbol, draft.builder.symbol(axis));
    }
    draft.builder.open_loop(axis);
    ++draft.open_loops;
  }
  loop::AxisId part = draft.builder.add_axis("p", folds[0].part_count());
  draft.builder.open_reduce({part});
  std::vector<KernelBuilder::Part> reductions;
  for (size_t f = 0; f < folds.size(); ++f)
    join(draft, copies[f], folds[f], part_index(folds[f], copies[f], draft.builder.symbol(part)), reductions);
  std::vector<ValueId> results = draft.builder.close_reduce(reductions);
  size_t next = 0;
  for (size_t f = 0; f < folds.size(); ++f) {
    for (const loop::Reduction& reduction : folds[f].nest.parts)
      copies[f].set(
          reduction.result,
          draft.builder.cast(results[next++], folds[f].nest.kernel->values[reduction.result].dtype));
    copies[f].copy(folds[f].nest.kept_values);
  }
  for (size_t f = 0; f < folds.size(); ++f) store_results(draft, copies[f], folds[f]);
  emit(std::move(draft));
}

// What the second half folds, at one part.
void FoldHalves::join(Draft& draft, const NestCopy& copy, const SplitFold& fold, Expr index,
                      std::vector<KernelBuilder::Part>& reductions) const {
  if (fold.squares) {
    reductions.push_back({ReduceOp::sum, {join_squares(draft, copy, fold, index)}});
    return;
  }
  for (size_t r = 0; r < fold.parts.size(); ++r) {
    ReduceOp op = fold.nest.parts[r].op;
    std::vector<ValueId> yields;
    for (BufferIndex buffer : fold.parts[r]) {
      ValueId loaded = draft.builder.load(parts(draft, fold, buffer, BufferMode::in), index);
      bool rounds = op == ReduceOp::sum && is_floating(draft.builder.dtype(loaded));
      yields.push_back(rounds ? draft.builder.cast(loaded, DType::f64) : loaded);
    }
    reductions.push_back({op, std::move(yields)});
  }
}

// With n elements x of a part, s its shift, d and q the sums of x - s and of its square, and e = s - m:
// sum of (x - m)^2 = q + e * (2 * d + n * e), whatever s is.
ValueId FoldHalves::join_squares(Draft& draft, const NestCopy& copy, const SplitFold& fold,
                                 Expr index) const {
  KernelBuilder& b = draft.builder;
  auto loaded = [&](BufferIndex buffer) {
    return b.cast(b.load(parts(draft, fold, buffer, BufferMode::in), index), DType::f64);
  };
  ValueId d = loaded(fold.parts[0][0]), q = loaded(fold.parts[0][1]), s = loaded(fold.shift);
  ValueId m = b.cast(load(draft, copy, fold.squares->around), DType::f64);
  int64_t elements = 1;
  for (const Piece& piece : fold.pieces) elements *= piece.chunk.constant();
  ValueId e = b.apply(ScalarOp::sub, {s, m});
  ValueId twice = b.apply(ScalarOp::add, {d, d});
  ValueId spread = b.apply(ScalarOp::mul, {b.constant(DType::f64, static_cast<double>(elements)), e});
  ValueId between = b.apply(ScalarOp::mul, {e, b.apply(ScalarOp::add, {twice, spread})});
  return b.apply(ScalarOp::add, {q, between});
}

void FoldHalves::store_results(Draft& draft, const NestCopy& copy, const SplitFold& fold) const {
  for (const loop::Store& store : fold.nest.stores) {
    const loop::Buffer& buffer = fold.nest.kernel->buffers[store.buffer];
    loop::BufferId id = declare(draft, launch(fold).arguments[store.buffer.index], buffer.shape, buffer.mode);
    draft.builder.store(id, copy.place(store.index), copy.at(store.value));
  }
}

}  // namespace kerf::sched
