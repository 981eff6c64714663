#include "sched/squares.h"

#include <algorithm>

#include "loop/walk.h"
#include "sym/simplify.h"

namespace kerf::sched {

using loop::ValueId;
using loop::ValueKind;
using sym::Expr;

namespace {

// A value of some nest of the program, at a point of the fold: the nest's axes are expressions over the fold's.
struct Term {
  size_t step = 0;
  Nest nest;
  ValueId value;
  std::vector<sym::Substitution> axes;

  const loop::Value& definition() const { return nest.kernel->values[value]; }
  bool is_load() const {
    const loop::Value& v = definition();
    return v.kind == ValueKind::load && v.operands.empty() && loop::values_in(v.index).empty();
  }
};

class Tracer {
 public:
  Tracer(const loop::Program& program, const Traffic& traffic, sym::Facts facts)
      : program_(program), traffic_(traffic), facts_(std::move(facts)) {}

  Element element(const Term& load) const {
    const auto& launch = std::get<loop::Launch>(program_.steps[load.step]);
    return {launch.arguments[load.definition().buffer.index],
            sym::simplify(sym::substitute(load.definition().index, load.axes), facts_)};
  }

  // The operation behind loads: what a pointwise kernel of its own has computed into the buffer.
  std::optional<Term> operation(Term term) const {
    while (term.is_load()) {
      std::optional<Term> from = computed(element(term));
      if (!from) return std::nullopt;
      term = std::move(*from);
    }
    if (term.definition().kind != ValueKind::apply) return std::nullopt;
    return term;
  }

  Term operand(const Term& term, size_t i) const {
    return {term.step, term.nest, term.definition().operands[i], term.axes};
  }

 private:
  std::optional<Term> computed(const Element& element) const {
    if (traffic_.writers[element.buffer].size() != 1 || !traffic_.is_stable(element.buffer, program_))
      return std::nullopt;
    size_t step = traffic_.writers[element.buffer][0];
    const auto* launch = std::get_if<loop::Launch>(&program_.steps[step]);
    std::optional<Nest> nest = launch ? take_apart(launch->kernel) : std::nullopt;
    if (!nest || nest->reduces() || nest->stores.size() != 1) return std::nullopt;
    sym::Facts facts = facts_;
    for (const axis::AxisInfo& axis : nest->kept) facts.set_extent(axis.symbol, axis.extent);
    auto digits = axis::dense_digits(nest->stores[0].index, nest->kept, facts);
    if (!digits) return std::nullopt;
    std::vector<sym::Substitution> axes = axis::invert(*digits, nest->kept, element.index, facts_);
    for (const axis::AxisInfo& axis : nest->kept)
      if (axis.extent.is_constant(1)) axes.push_back({axis.symbol, axis.extent.context().constant(0)});
    ValueId stored = nest->stores[0].value;
    return Term{step, std::move(*nest), stored, std::move(axes)};
  }

  const loop::Program& program_;
  const Traffic& traffic_;
  sym::Facts facts_;
};

bool is_plain_sum(const Nest& fold) {
  return fold.parts.size() == 1 && fold.parts[0].op == ops::ReduceOp::sum;
}

}  // namespace

std::optional<Element> summand_of(const loop::Program& program, size_t step, const Nest& fold) {
  if (!is_plain_sum(fold)) return std::nullopt;
  const loop::Value& yield = fold.kernel->values[fold.parts[0].yields[0]];
  if (yield.kind != ValueKind::load || !yield.operands.empty() || !loop::values_in(yield.index).empty())
    return std::nullopt;
  return Element{std::get<loop::Launch>(program.steps[step]).arguments[yield.buffer.index], yield.index};
}

std::optional<Squares> squares_of(const loop::Program& program, const Traffic& traffic, size_t step,
                                  const Nest& fold, const sym::Facts& size_facts) {
  if (!is_plain_sum(fold)) return std::nullopt;
  sym::Facts facts = size_facts;
  std::vector<sym::Substitution> axes;
  for (const axis::AxisInfo& axis : fold.all_axes()) {
    facts.set_extent(axis.symbol, axis.extent);
    axes.push_back({axis.symbol, axis.symbol});
  }
  Tracer tracer(program, traffic, facts);
  std::optional<Term> square = tracer.operation({step, fold, fold.parts[0].yields[0], axes});
  if (!square || square->definition().op != ops::ScalarOp::mul) return std::nullopt;
  std::optional<Squares> found;
  for (size_t side = 0; side < 2; ++side) {
    std::optional<Term> difference = tracer.operation(tracer.operand(*square, side));
    if (!difference || difference->definition().op != ops::ScalarOp::sub) return std::nullopt;
    Term value = tracer.operand(*difference, 0), around = tracer.operand(*difference, 1);
    if (!value.is_load() || !around.is_load()) return std::nullopt;
    Squares now{tracer.element(value), tracer.element(around)};
    if (found && !(found->value == now.value && found->around == now.around)) return std::nullopt;
    // They are read later than the operations between did.
    for (const Element& read : {now.value, now.around})
      if (!traffic.is_stable(read.buffer, program)) return std::nullopt;
    found = now;
  }
  for (const axis::AxisInfo& axis : fold.reduced)
    if (sym::mentions(found->around.index, axis.symbol)) return std::nullopt;
  return found;
}

}  // namespace kerf::sched
