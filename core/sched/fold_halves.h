#pragma once
// The kernels that a split fold becomes (split_folds.h says why and when). Emission only.
#include <optional>
#include <string>
#include <vector>

#include "loop/build.h"
#include "loop/program.h"
#include "sched/nest.h"
#include "sched/nest_copy.h"
#include "sched/split_folds.h"
#include "sched/squares.h"

namespace kerf::sched {

// A fold in two halves. Buffers of parts have the shape [parts, kept elements].
struct SplitFold {
  size_t step = 0;  // the fold's, in the program before
  Nest nest;
  std::vector<Piece> pieces;  // per folded axis
  // Per reduction, what its parts are: its results; extrema, then their indices; of squares, the sums of the deviations from
  // the part's own mean and of their squares.
  std::vector<std::vector<target::BufferIndex>> parts;
  std::optional<Squares> squares;
  target::BufferIndex shift = target::kNoBuffer;  // of squares: the means of the parts

  sym::Expr part_count() const;
  sym::Expr kept_count() const;
};

// Appends to `program`, which begins as a copy of `before` without steps.
class FoldHalves {
 public:
  // `suffix`: of the names of kernels and buffers of parts.
  FoldHalves(const loop::Program& before, loop::Program& program, std::string suffix);

  // The first half of a fold; fills in `parts`.
  void emit_parts(SplitFold& fold);
  // The same for a sum of squares, given the split sum of the elements themselves.
  void emit_parts_of_squares(SplitFold& fold, const SplitFold& sum);
  // The second halves of folds on one domain, as one kernel.
  void emit_joins(const std::vector<SplitFold>& folds);

  const sym::Facts& facts() const { return facts_; }

 private:
  // A kernel under construction, its buffers declared as they are met.
  struct Draft {
    loop::KernelBuilder builder;
    std::vector<target::BufferIndex> arguments;
    std::vector<std::string> sources;
    size_t open_loops = 0;
  };
  // Loops over the kept axes and the parts of a fold are open; its axes are bound.
  struct PartLoops {
    NestCopy copy;
    std::vector<loop::AxisId> folded;  // what is left to fold
    sym::Expr index;                   // in buffers of parts
  };

  Draft draft(const std::string& name, const std::vector<const Nest*>& nests) const;
  void emit(Draft draft);
  loop::BufferId declare(Draft& draft, target::BufferIndex buffer, std::vector<sym::Expr> shape,
                         loop::BufferMode mode) const;
  loop::BufferId parts(Draft& draft, const SplitFold& fold, target::BufferIndex buffer,
                       loop::BufferMode mode) const;
  loop::ValueId load(Draft& draft, const NestCopy& copy, const Element& element) const;
  NestCopy copy_of(Draft& draft, const SplitFold& fold) const;
  PartLoops open_parts(Draft& draft, const SplitFold& fold) const;
  sym::Expr part_index(const SplitFold& fold, const NestCopy& copy, sym::Expr part) const;
  target::BufferIndex add_buffer(const SplitFold& fold, const std::string& suffix, DType dtype);
  void emit_shift(SplitFold& fold, const SplitFold& sum);
  void join(Draft& draft, const NestCopy& copy, const SplitFold& fold, sym::Expr index,
            std::vector<loop::KernelBuilder::Part>& reductions) const;
  loop::ValueId join_squares(Draft& draft, const NestCopy& copy, const SplitFold& fold,
                             sym::Expr index) const;
  void store_results(Draft& draft, const NestCopy& copy, const SplitFold& fold) const;

  const loop::Launch& launch(const SplitFold& fold) const {
    return std::get<loop::Launch>(before_.steps[fold.step]);
  }

  const loop::Program& before_;
  loop::Program& program_;
  std::string suffix_;
  sym::Context& context_;
  sym::Facts facts_;
};

}  // namespace kerf::sched
