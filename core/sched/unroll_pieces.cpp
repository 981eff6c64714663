#include "sched/unroll_pieces.h"

#include <algorithm>
#include <map>
#include <set>

#include "loop/walk.h"
#include "sched/profit.h"
#include "sched/traffic.h"
#include "sched/unroll_nest.h"
#include "sym/simplify.h"

namespace kerf::sched {

using loop::Kernel;
using sym::Expr;
using target::BufferIndex;

namespace {

// An element at `address` is in piece (address // block) % parts.
struct Split {
  Expr block;
  int64_t parts;

  Expr period() const { return block * parts; }
};

std::optional<int64_t> piece_of(Expr address, const Split& split, const sym::Facts& facts) {
  Expr parts = address.context().constant(split.parts);
  Expr piece = sym::simplify(sym::mod(sym::floor_div(address, split.block), parts), facts);
  return piece.is_constant() ? std::optional(piece.constant()) : std::nullopt;
}

Expr address_in_piece(Expr address, const Split& split, const sym::Facts& facts) {
  Expr before = sym::mul(sym::floor_div(address, split.period()), split.block);
  return sym::simplify(before + sym::mod(address, split.block), facts);
}

// What becomes of a program: buffers in pieces, nests unrolled.
struct Pieces {
  std::map<BufferIndex, Split> splits;
  std::map<size_t, Unrolling> unrolled;  // per step
  std::map<size_t, Kernel> kernels;      // of those steps
};

class Finder {
 public:
  Finder(const loop::Program& program, const PieceLimits& limits)
      : program_(program),
        limits_(limits),
        traffic_(traffic_of(program)),
        facts_(loop::facts_of(program.sizes)),
        nests_(program.steps.size()) {
    for (size_t step = 0; step < program.steps.size(); ++step) {
      const auto* launch = std::get_if<loop::Launch>(&program.steps[step]);
      if (launch &&
          std::ranges::all_of(traffic_.steps[step].writes, [&](BufferIndex b) { return is_free(b); }))
        nests_[step] = take_apart(launch->kernel);
    }
  }

  // All that pays.
  Pieces run() {
    for (BufferIndex buffer = 0; buffer < program_.buffers.size(); ++buffer) {
      if (found_.splits.contains(buffer) || !can_split(buffer)) continue;
      if (std::optional<Split> split = given_pieces(buffer)) try_from(buffer, *split);
    }
    return std::move(found_);
  }

  std::vector<size_t> touching(BufferIndex buffer) const {
    std::vector<size_t> steps = traffic_.writers[buffer];
    const std::vector<size_t>& readers = traffic_.readers[buffer];
    steps.insert(steps.end(), readers.begin(), readers.end());
    return steps;
  }

 private:
  bool is_free(BufferIndex b) const {
    return traffic_.is_stable(b, program_) && !program_.buffers[b].realised;
  }
  bool are_nests(const std::vector<size_t>& steps) const {
    return std::ranges::all_of(steps, [&](size_t step) { return nests_[step].has_value(); });
  }
  const loop::Launch& launch(size_t step) const { return std::get<loop::Launch>(program_.steps[step]); }

  // A value that lives only between nests.
  bool can_split(BufferIndex buffer) const {
    return program_.buffers[buffer].kind == loop::BufferKind::temp && !traffic_.returned[buffer] &&
           is_free(buffer) && !traffic_.writers[buffer].empty() && !traffic_.readers[buffer].empty() &&
           are_nests(traffic_.writers[buffer]) && are_nests(traffic_.readers[buffer]);
  }

  template <class Visit>  // visit(address)
  void for_each_access(const Kernel& kernel, size_t step, BufferIndex buffer, Visit visit) const {
    loop::for_each_access(kernel, [&](loop::BufferId id, Expr address, const loop::Path&, bool) {
      if (launch(step).arguments[id.index] == buffer) visit(address);
    });
  }

  // The pieces in which some nest makes or reads the value, if they are equal ones.
  std::optional<Split> given_pieces(BufferIndex buffer) const {
    std::optional<Split> found;
    for (size_t step : touching(buffer)) {
      const std::vector<axis::AxisInfo> axes = nests_[step]->all_axes();
      for_each_access(launch(step).kernel, step, buffer, [&](Expr address) {
        if (!found) found = piece_at(address, axes, program_.buffers[buffer].elements);
      });
    }
    return found;
  }

  std::optional<Split> piece_at(Expr address, const std::vector<axis::AxisInfo>& axes, Expr elements) const {
    std::optional<axis::DigitRuns> runs = axis::digit_runs(address, axes, facts_);
    if (!runs || runs->runs.empty() || runs->runs.size() > 2 || !runs->runs[0].stride.is_constant(1))
      return std::nullopt;
    Expr block = runs->runs[0].count, period = runs->runs.size() == 2 ? runs->runs[1].stride : elements;
    std::optional<Expr> parts = sym::exact_div(period, block, facts_);
    if (!parts || !parts->is_constant() || parts->constant() < 2 || parts->constant() > limits_.max_parts)
      return std::nullopt;
    Split split{block, parts->constant()};
    bool fits = hinted(block, facts_) >= limits_.min_block && sym::exact_div(elements, period, facts_);
    return fits && piece_of(runs->offset, split, facts_) ? std::optional(split) : std::nullopt;
  }

  void try_from(BufferIndex seed, const Split& split) {
    Pieces pieces;
    pieces.splits.emplace(seed, split);
    std::vector<BufferIndex> open{seed};
    while (!open.empty()) {
      BufferIndex buffer = open.back();
      open.pop_back();
      const Split wanted = pieces.splits.at(buffer);
      for (size_t step : touching(buffer)) follow(pieces, open, step, buffer, wanted);
    }
    std::erase_if(pieces.splits,
                  [&](const auto& entry) { return !is_in_pieces(pieces, entry.first, entry.second); });
    if (!pieces.splits.contains(seed) || !pays(pieces)) return;
    found_.splits.merge(pieces.splits);
    found_.unrolled.merge(pieces.unrolled);
    found_.kernels.merge(pieces.kernels);
  }

  // Unrolls the nest if it touches several pieces at once.
  void follow(Pieces& pieces, std::vector<BufferIndex>& open, size_t step, BufferIndex buffer,
              const Split& split) const {
    if (is_unrolled(pieces, step)) return;
    const Kernel& kernel = launch(step).kernel;
    const sym::Facts facts = loop::facts_of(kernel);
    std::optional<Unrolling> unrolling;
    for_each_access(kernel, step, buffer, [&](Expr address) {
      if (!unrolling && !piece_of(address, split, facts))
        unrolling = find_unrolling(*nests_[step], address, split);
    });
    if (unrolling) unroll_nest(pieces, open, step, *unrolling);
  }

  bool is_unrolled(const Pieces& pieces, size_t step) const {
    return pieces.unrolled.contains(step) || found_.unrolled.contains(step);
  }

  // Then its other values are wanted in pieces too, and folds of the same rows run over the same part of a row.
  void unroll_nest(Pieces& pieces, std::vector<BufferIndex>& open, size_t step,
                   const Unrolling& unrolling) const {
    const axis::AxisInfo axis = nests_[step]->all_axes()[unrolling.axis];
    pieces.unrolled.emplace(step, unrolling);
    const Kernel& kernel = pieces.kernels.emplace(step, unroll(*nests_[step], unrolling)).first->second;
    std::set<BufferIndex> rows;
    loop::for_each_access(launch(step).kernel, [&](loop::BufferId id, Expr address, const loop::Path&, bool) {
      const BufferIndex other = launch(step).arguments[id.index];
      if (!sym::mentions(address, axis.symbol)) {
        rows.insert(other);
        return;
      }
      std::optional<Expr> stride = axis::stride_over(address, axis.symbol);
      if (!stride || pieces.splits.contains(other) || found_.splits.contains(other) || !can_split(other))
        return;
      Split same{unrolling.block * *stride, unrolling.parts};
      if (!is_in_pieces(kernel, step, other, same)) return;
      pieces.splits.emplace(other, same);
      open.push_back(other);
    });
    for (BufferIndex row : rows) follow_folds(pieces, open, row, axis.extent, unrolling, rows);
  }

  // The folds that a value of rows is made of.
  void follow_folds(Pieces& pieces, std::vector<BufferIndex>& open, BufferIndex row, Expr extent,
                    const Unrolling& like, std::set<BufferIndex>& seen) const {
    if (!is_free(row) || !are_nests(traffic_.writers[row])) return;
    for (size_t step : traffic_.writers[row]) {
      const Nest& nest = *nests_[step];
      if (is_unrolled(pieces, step)) continue;
      if (nest.reduces()) {
        const size_t folded = nest.kept.size();
        if (nest.reduced.size() == 1 && can_unroll(nest, folded) &&
            sym::provably_equal(nest.reduced[0].extent, extent, facts_))
          unroll_nest(pieces, open, step, {folded, like.block, like.times, like.parts});
        continue;
      }
      for (BufferIndex input : traffic_.steps[step].reads)
        if (seen.insert(input).second) follow_folds(pieces, open, input, extent, like, seen);
    }
  }

  std::optional<Unrolling> find_unrolling(const Nest& nest, Expr address, const Split& split) const {
    const std::vector<axis::AxisInfo> axes = nest.all_axes();
    std::optional<axis::LinearForm> form = axis::linear_form(address, axes);
    for (size_t k = 0; form && k < axes.size(); ++k) {
      Expr stride = form->coefficients[k];
      if (stride.is_constant(0) || !can_unroll(nest, k)) continue;
      std::optional<Expr> block = sym::exact_div(split.block, stride, facts_);
      std::optional<Expr> times = sym::exact_div(axes[k].extent * stride, split.period(), facts_);
      Expr zero = address.context().constant(0);
      if (block && times && sym::provably_less(zero, *block, facts_))
        return Unrolling{k, *block, *times, split.parts};
    }
    return std::nullopt;
  }

  // All that touches the buffer now touches one piece at a time.
  bool is_in_pieces(const Pieces& pieces, BufferIndex buffer, const Split& split) const {
    return std::ranges::all_of(touching(buffer), [&](size_t step) {
      auto own = pieces.kernels.find(step), earlier = found_.kernels.find(step);
      return is_in_pieces(own != pieces.kernels.end()       ? own->second
                          : earlier != found_.kernels.end() ? earlier->second
                                                            : launch(step).kernel,
                          step, buffer, split);
    });
  }

  // At addresses in the pieces as plain as before.
  bool is_in_pieces(const Kernel& kernel, size_t step, BufferIndex buffer, const Split& split) const {
    if (!sym::exact_div(program_.buffers[buffer].elements, split.period(), facts_)) return false;
    const sym::Facts facts = loop::facts_of(kernel);
    std::vector<axis::AxisInfo> axes;
    for (const loop::Axis& axis : kernel.axes) axes.push_back({axis.symbol, axis.extent});
    bool holds = true;
    for_each_access(kernel, step, buffer, [&](Expr address) {
      holds = holds && piece_of(address, split, facts) &&
              axis::linear_form(address_in_piece(address, split, facts), axes);
    });
    return holds;
  }

  int64_t bytes(BufferIndex buffer) const {
    return hinted(program_.buffers[buffer].elements, facts_) * byte_size(program_.buffers[buffer].dtype);
  }

  // Values whose makers and readers did not meet stay out of memory; others that unrolled nests touch at several places may have to
  // go through it.
  bool pays(const Pieces& pieces) const {
    int64_t saved = 0, lost = 0;
    for (const auto& [buffer, split] : pieces.splits)
      if (given_pieces(buffer)) saved += 2 * bytes(buffer);
    std::set<BufferIndex> whole;
    for (const auto& [step, kernel] : pieces.kernels)
      for (const auto& touched : {traffic_.steps[step].reads, traffic_.steps[step].writes})
        for (BufferIndex buffer : touched)
          if (!pieces.splits.contains(buffer) && is_between_nests(buffer) &&
              addresses(kernel, step, buffer) > 1)
            whole.insert(buffer);
    for (BufferIndex buffer : whole) lost += (can_split(buffer) ? 2 : 1) * bytes(buffer);
    return saved > lost;
  }

  bool is_between_nests(BufferIndex buffer) const {
    auto any_nest = [&](const std::vector<size_t>& steps) {
      return std::ranges::any_of(steps, [&](size_t s) { return nests_[s].has_value(); });
    };
    return any_nest(traffic_.writers[buffer]) && any_nest(traffic_.readers[buffer]);
  }

  size_t addresses(const Kernel& kernel, size_t step, BufferIndex buffer) const {
    std::set<const sym::Node*> found;
    for_each_access(kernel, step, buffer, [&](Expr address) { found.insert(address.node()); });
    return found.size();
  }

  const loop::Program& program_;
  PieceLimits limits_;
  Traffic traffic_;
  sym::Facts facts_;
  std::vector<std::optional<Nest>> nests_;  // per step, where it may be merged
  Pieces found_;
};

// The program with a buffer for each piece.
class Rewriter {
 public:
  Rewriter(const loop::Program& program, const Pieces& pieces) : pieces_(pieces), result_(program) {
    for (const auto& [buffer, split] : pieces.splits) {
      first_piece_[buffer] = static_cast<BufferIndex>(result_.buffers.size());
      for (int64_t k = 0; k < split.parts; ++k) {
        loop::ProgramBuffer piece = program.buffers[buffer];
        piece.name += fmt::format("_piece{}", k);
        piece.elements = *sym::exact_div(piece.elements, program.context->constant(split.parts),
                                         loop::facts_of(program.sizes));
        piece.pieces = 0;
        result_.buffers.push_back(std::move(piece));
      }
    }
  }

  loop::Program run(const std::set<size_t>& steps) {
    for (size_t step : steps) {
      auto& launch = std::get<loop::Launch>(result_.steps[step]);
      auto unrolled = pieces_.kernels.find(step);
      if (unrolled != pieces_.kernels.end()) launch.kernel = unrolled->second;
      rewrite(launch);
    }
    for (const auto& [buffer, split] : pieces_.splits)
      for (BufferIndex k = first_piece_[buffer], end = k + static_cast<BufferIndex>(split.parts); k < end;
           ++k)
        if (writers_[k] > 1) result_.buffers[k].pieces = writers_[k];
    return std::move(result_);
  }

 private:
  void rewrite(loop::Launch& launch) {
    Kernel& kernel = launch.kernel;
    const sym::Facts facts = loop::facts_of(kernel);
    IdVector<loop::BufferId, loop::Buffer> old;
    std::vector<BufferIndex> arguments;
    std::swap(old, kernel.buffers);
    std::swap(arguments, launch.arguments);
    auto bind = [&](BufferIndex index, const loop::Buffer& like, bool is_piece) {
      auto known = std::ranges::find(launch.arguments, index);
      if (known != launch.arguments.end())
        return loop::BufferId(static_cast<size_t>(known - launch.arguments.begin()));
      loop::Buffer buffer = like;
      if (is_piece)
        buffer.name = result_.buffers[index].name, buffer.shape = {result_.buffers[index].elements};
      launch.arguments.push_back(index);
      return kernel.buffers.push_back(std::move(buffer));
    };
    auto move = [&](loop::BufferId& buffer, Expr& address) {
      const BufferIndex index = arguments[buffer.index];
      auto split = pieces_.splits.find(index);
      if (split == pieces_.splits.end()) {
        buffer = bind(index, old[buffer], false);
        return;
      }
      auto piece = static_cast<BufferIndex>(*piece_of(address, split->second, facts));
      address = address_in_piece(address, split->second, facts);
      buffer = bind(first_piece_.at(index) + piece, old[buffer], true);
    };
    for (loop::Value& value : kernel.values)
      if (value.kind == loop::ValueKind::load) move(value.buffer, value.index);
    std::set<BufferIndex> written;
    loop::for_each_stmt(kernel.body, [&](loop::Stmt& stmt) {
      auto* store = std::get_if<loop::Store>(&stmt);
      if (!store) return;
      move(store->buffer, store->index);
      written.insert(launch.arguments[store->buffer.index]);
    });
    for (BufferIndex buffer : written) ++writers_[buffer];
  }

  const Pieces& pieces_;
  loop::Program result_;
  std::map<BufferIndex, BufferIndex> first_piece_;
  std::map<BufferIndex, int> writers_;  // of what is rewritten
};

}  // namespace

std::optional<loop::Program> unroll_pieces(const loop::Program& program, const PieceLimits& limits) {
  Finder finder(program, limits);
  const Pieces pieces = finder.run();
  if (pieces.splits.empty()) return std::nullopt;
  std::set<size_t> steps;
  for (const auto& [step, kernel] : pieces.kernels) steps.insert(step);
  for (const auto& [buffer, split] : pieces.splits)
    for (size_t step : finder.touching(buffer)) steps.insert(step);
  return Rewriter(program, pieces).run(steps);
}

}  // namespace kerf::sched
