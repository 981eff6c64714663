#include "sched/split_folds.h"

#include <algorithm>

#include "sched/fold_halves.h"
#include "sched/traffic.h"
#include "sym/simplify.h"

namespace kerf::sched {

using axis::AxisInfo;
using sym::Expr;
using target::BufferIndex;

namespace {

bool same_extents(const std::vector<AxisInfo>& a, const std::vector<AxisInfo>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const AxisInfo& x, const AxisInfo& y) { return x.extent == y.extent; });
}

class Splitter {
 public:
  Splitter(const loop::Program& program, const ChooseParts& choose, bool late, const std::string& suffix)
      : program_(program),
        choose_(choose),
        late_(late),
        traffic_(traffic_of(program)),
        result_(program),
        halves_(program, result_, suffix),
        is_waiting_(program.steps.size()) {
    result_.steps.clear();
  }

  loop::Program run() {
    for (size_t step = 0; step < program_.steps.size(); ++step) {
      finish_read_by(step);
      if (!split(step)) result_.steps.push_back(program_.steps[step]);
    }
    while (!waiting_.empty()) finish(waiting_.front());
    return std::move(result_);
  }

 private:
  bool split(size_t step) {
    const auto* launch = std::get_if<loop::Launch>(&program_.steps[step]);
    std::optional<Nest> nest = launch ? take_apart(launch->kernel) : std::nullopt;
    if (!nest || !nest->reduces() || !is_stable(step)) return false;
    std::optional<std::vector<Piece>> pieces = choose_(step, *nest);
    if (!pieces) return false;
    SplitFold fold{.step = step, .nest = *nest, .pieces = *pieces};
    is_waiting_[step] = true;
    if (late_) {
      waiting_.push_back(std::move(fold));
      return true;
    }
    fold.squares = squares_of(program_, traffic_, step, *nest, halves_.facts());
    const SplitFold* sum = fold.squares ? sum_of_same(fold) : nullptr;
    if (sum) {
      fold.pieces = sum->pieces;
      halves_.emit_parts_of_squares(fold, *sum);
    } else {
      fold.squares.reset();
      halves_.emit_parts(fold);
    }
    if (summand_of(program_, step, *nest)) sums_.push_back(fold);
    waiting_.push_back(std::move(fold));
    return true;
  }

  // The second half runs later than the fold did: that must not show.
  bool is_stable(size_t step) const {
    auto stable = [&](BufferIndex b) { return traffic_.is_stable(b, program_); };
    const StepTraffic& traffic = traffic_.steps[step];
    return std::all_of(traffic.reads.begin(), traffic.reads.end(), stable) &&
           std::all_of(traffic.writes.begin(), traffic.writes.end(), stable);
  }

  // The split sum of the elements whose squares `fold` sums around something. What that something is does not matter for the
  // numbers; it is the mean as a rule, and then the parts of the squares need not wait for it.
  const SplitFold* sum_of_same(const SplitFold& fold) const {
    for (const SplitFold& sum : sums_) {
      if (!same_extents(sum.nest.kept, fold.nest.kept) || !same_extents(sum.nest.reduced, fold.nest.reduced))
        continue;
      std::vector<sym::Substitution> axes;
      std::vector<AxisInfo> from = sum.nest.all_axes(), to = fold.nest.all_axes();
      for (size_t i = 0; i < from.size(); ++i) axes.push_back({from[i].symbol, to[i].symbol});
      Element summand = *summand_of(program_, sum.step, sum.nest);
      auto index_of = [&](Expr index) { return sym::substitute(index, axes); };
      bool constant_parts = std::all_of(sum.pieces.begin(), sum.pieces.end(),
                                        [](const Piece& p) { return p.chunk.is_constant(); });
      if (constant_parts && Element{summand.buffer, index_of(summand.index)} == fold.squares->value &&
          index_of(sum.nest.stores.front().index) == fold.nest.stores.front().index)
        return &sum;
    }
    return nullptr;
  }

  // A buffer that a waiting fold writes has no other writer.
  void finish_read_by(size_t step) {
    for (BufferIndex buffer : traffic_.steps[step].reads) {
      const std::vector<size_t>& writers = traffic_.writers[buffer];
      if (writers.empty() || !is_waiting_[writers.front()]) continue;
      finish(*std::find_if(waiting_.begin(), waiting_.end(),
                           [&](const SplitFold& fold) { return fold.step == writers.front(); }));
    }
  }

  // Everything that waits on the domain of `first`.
  void finish(const SplitFold& first) {
    std::vector<SplitFold> ready, others;
    std::vector<AxisInfo> kept = first.nest.kept;
    Expr parts = first.part_count();
    for (SplitFold& fold : waiting_) {
      bool joins = fold.part_count() == parts && same_extents(fold.nest.kept, kept);
      is_waiting_[fold.step] = !joins;
      (joins ? ready : others).push_back(std::move(fold));
    }
    waiting_ = std::move(others);
    if (late_)
      for (SplitFold& fold : ready) halves_.emit_parts(fold);
    halves_.emit_joins(ready);
  }

  const loop::Program& program_;
  const ChooseParts& choose_;
  bool late_;
  Traffic traffic_;
  loop::Program result_;
  FoldHalves halves_;
  std::vector<bool> is_waiting_;    // per step of `program_`
  std::vector<SplitFold> waiting_;  // their second halves are still to come
  std::vector<SplitFold> sums_;     // of plain elements
};

}  // namespace

loop::Program split_folds(const loop::Program& program, const SplitLimits& limits) {
  const sym::Facts facts = loop::facts_of(program.sizes);
  auto choose = [&](size_t, const Nest& nest) { return choose_parts(nest, facts, limits); };
  return split_folds(program, choose, false, "_parts");
}

loop::Program split_folds(const loop::Program& program, const ChooseParts& choose, bool late,
                          const std::string& suffix) {
  return Splitter(program, choose, late, suffix).run();
}

}  // namespace kerf::sched
