// What every target needs of a kernel.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "codegen/triton/rules.h"

namespace kerf::triton {

namespace {

// --- bounds

// In all lanes that the mask lets through, a sum (without its constant) is in this range.
struct Bound {
  std::vector<Term> terms;
  Range range;
};

Range common(Range a, Range b) { return {std::max(a.low, b.low), std::min(a.high, b.high)}; }

bool same_terms(const std::vector<Term>& a, const std::vector<Term>& b) {
  return std::ranges::equal(
      a, b, [](const Term& x, const Term& y) { return x.symbol == y.symbol && x.factor == y.factor; });
}

// What the comparison says of the index on its left; nothing where that is not known.
std::optional<Range> range_of_comparison(const std::string& operation, Range limit) {
  const Range all;
  if (!limit.is_bounded()) return std::nullopt;
  if (operation == "<") return Range{all.low, limit.high - 1};
  if (operation == "<=") return Range{all.low, limit.high};
  if (operation == ">") return Range{limit.low + 1, all.high};
  if (operation == ">=") return Range{limit.low, all.high};
  return std::nullopt;
}

// False where the mask holds more than that: what it lets through is not known then.
bool collect_bounds(const Trace& trace, ValueId mask, std::vector<Bound>& bounds) {
  if (!mask.valid()) return true;
  const Value& value = trace.values[mask];
  if (value.operation == "&" || value.operation == "[]" || value.operation == "broadcast_to") {
    bool all = true;
    for (ValueId part : value.operands) all = collect_bounds(trace, part, bounds) && all;
    return all;
  }
  if (value.operands.size() != 2) return false;
  const Value& index = trace.values[value.operands[0]];
  auto range = range_of_comparison(value.operation, trace.values[value.operands[1]].range);
  if (!range || !index.form.is_affine || !index.form.is_exact) return false;
  *range = common(*range, index.range) - Range{index.form.constant, index.form.constant};
  for (Bound& bound : bounds)
    if (same_terms(bound.terms, index.form.terms)) return bound.range = common(bound.range, *range), true;
  bounds.push_back({index.form.terms, *range});
  return true;
}

// The offsets of the lanes that the mask lets through; nothing if it lets none through. Bounded symbols have their bounds, and
// a bounded sum takes the place of its terms where that says more.
class MaskedRange {
 public:
  MaskedRange(const Trace& trace, std::vector<Bound> bounds)
      : symbols_(trace.symbols), bounds_(std::move(bounds)) {
    for (const Bound& bound : bounds_)
      if (bound.terms.size() == 1 && bound.terms[0].factor == 1) {
        Range& range = symbols_[bound.terms[0].symbol].range;
        range = common(range, bound.range);
      }
    for (Bound& bound : bounds_) bound.range = common(bound.range, sum({.terms = bound.terms}));
  }

  std::optional<Range> of(IndexForm form) const {
    Range extra{0, 0};
    for (const Bound& bound : bounds_) {
      if (bound.range.low > bound.range.high) return std::nullopt;
      for (const Term& term : bound.terms) {
        if (std::abs(term.factor) != 1 || form.factor(term.symbol) == 0) continue;
        int64_t factor = form.factor(term.symbol) * term.factor;
        IndexForm rest = add(form, {.terms = bound.terms}, -factor);
        Range more = extra + bound.range * Range{factor, factor};
        if (width(sum(rest) + more) >= width(sum(form) + extra)) continue;
        form = std::move(rest), extra = more;
      }
    }
    return sum(form) + extra;
  }

 private:
  static int64_t width(Range range) {
    return range.is_bounded() ? range.high - range.low : Range::kUnbounded;
  }

  Range sum(const IndexForm& form) const {
    Range result{form.constant, form.constant};
    for (const Term& term : form.terms)
      result = result + symbols_[term.symbol].range * Range{term.factor, term.factor};
    return result;
  }

  IdVector<SymbolId, Symbol> symbols_;
  std::vector<Bound> bounds_;
};

// --- what is used

// Values on which a store, an atomic or a branch depends; masks do not make an axis used.
std::vector<bool> reached(const Trace& trace) {
  std::vector<bool> marks(trace.values.size());
  std::vector<ValueId> open;
  for (size_t i = 0; i < trace.values.size(); ++i)
    if (trace.values[ValueId(i)].is_nothing || trace.values[ValueId(i)].operation.starts_with("atomic_"))
      open.emplace_back(i);
  while (!open.empty()) {
    ValueId id = open.back();
    open.pop_back();
    if (marks[id.index]) continue;
    marks[id.index] = true;
    for (ValueId operand : trace.values[id].operands) open.push_back(operand);
  }
  return marks;
}

std::string name_of(const Trace& trace, AxisId axis) {
  const TileAxis& info = trace.axes[axis];
  return info.name.empty() ? fmt::format("of line {}", info.line) : info.name;
}

}  // namespace

void check_bounds(const Trace& trace, Violations& violations) {
  for (const Access& access : trace.accesses) {
    const Value& pointer = trace.values[access.pointer];
    if (access.is_guarded || !pointer.form.is_affine || !pointer.form.is_exact) continue;
    std::vector<Bound> bounds;
    if (!collect_bounds(trace, access.mask, bounds)) continue;
    std::optional<Range> let_through = MaskedRange(trace, std::move(bounds)).of(pointer.form);
    if (!let_through) continue;
    const Range range = *let_through;
    const FileBuffer& buffer = trace.buffers[pointer.buffer];
    if (!range.is_bounded() || (range.low >= 0 && range.high < buffer.elements)) continue;
    violations.push_back({trace.values[access.at].line, "bounds",
                          fmt::format("offsets go from {} to {}, but {} has {} elements: mask the tail",
                                      range.low, range.high, buffer.name, buffer.elements)});
  }
}

void check_overflow(const Trace& trace, Violations& violations) {
  constexpr int64_t kHighest = std::numeric_limits<int32_t>::max();
  constexpr int64_t kLowest = std::numeric_limits<int32_t>::min();
  for (const Value& value : trace.values) {
    // A number of the text has as many bits as it needs.
    bool is_counted = value.dtype == DType::i32 && !value.is_pointer && !value.is_nothing &&
                      !value.is_constant && value.range.is_bounded();
    if (is_counted && (value.range.high > kHighest || value.range.low < kLowest))
      violations.push_back(
          {value.line, "overflow",
           fmt::format("this reaches {} in 32 bits: add large offsets to the pointer, as 64-bit scalars",
                       value.range.high > kHighest ? value.range.high : value.range.low)});
  }
}

void check_unused(const Trace& trace, Violations& violations) {
  std::vector<bool> marks = reached(trace);
  std::vector<bool> used(trace.axes.size());
  for (size_t i = 0; i < marks.size(); ++i) {
    const Value& value = trace.values[ValueId(i)];
    if (marks[i] && value.operation == "arange") used[value.dims[0].axis.index] = true;
    if (!marks[i] && value.operation == "load")
      violations.push_back(
          {value.line, "unused", "nothing that is stored or asserted depends on this load: leave it out"});
  }
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      violations.push_back(
          {trace.axes[AxisId(i)].line, "unused",
           fmt::format("axis {} is in no access and no value: leave it out", name_of(trace, AxisId(i)))});
  for (const Loop& loop : trace.loops) {
    if (!loop.variable.valid() || loop.carries || marks[loop.variable.index]) continue;
    if (!trace.values[loop.variable].range.is_point())
      violations.push_back(
          {loop.line, "unused", "nothing in this loop depends on its variable: run the body once"});
  }
}

void check_order(const Trace& trace, Violations& violations) {
  bool permutes = std::ranges::any_of(trace.values, [](auto& value) { return value.operation == "permute"; });
  if (permutes) return;
  std::map<std::pair<size_t, std::string>, size_t> places;  // by rank and axis
  std::map<std::pair<std::string, std::string>, int> before;
  for (const Access& access : trace.accesses) {
    const std::vector<Dim>& dims = trace.values[access.pointer].dims;
    int line = trace.values[access.at].line;
    std::vector<std::string> names;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i].extent == 1 || !dims[i].axis.valid()) continue;
      std::string name = name_of(trace, dims[i].axis);
      auto [place, is_new] = places.try_emplace({dims.size(), name}, i);
      bool is_moved = !is_new && place->second != i;
      for (const std::string& other : names) {
        is_moved |= before.contains({name, other});
        before.try_emplace({other, name}, line);
      }
      if (is_moved)
        violations.push_back(
            {line, "order",
             fmt::format("axis {} is dimension {} here and has another place in other loads or stores: "
                         "keep one order in the kernel",
                         name, i)});
      names.push_back(std::move(name));
    }
  }
}

void check_arange(const Trace& trace, Violations& violations) {
  for (const Value& value : trace.values)
    if (value.operation == "arange" && !std::has_single_bit(static_cast<uint64_t>(value.dims[0].extent)))
      violations.push_back(
          {value.line, "arange",
           fmt::format("an extent of {}: take the next power of two and mask", value.dims[0].extent)});
}

}  // namespace kerf::triton
