#include "axis/linear.h"

#include <algorithm>

#include "sym/simplify.h"

namespace kerf::axis {

using sym::Expr;

namespace {

// Sums of constant multiples of axes, which most indices are; nullopt for everything else.
std::optional<LinearForm> plain_form(Expr expr, std::span<const AxisInfo> axes) {
  sym::Context& context = expr.context();
  LinearForm form;
  form.coefficients.assign(axes.size(), context.constant(0));
  form.rest = context.constant(0);
  for (const sym::Term& term : sym::terms_of(expr)) {
    if (term.rest.is_constant(1)) {
      form.rest = context.constant(term.coefficient);
      continue;
    }
    auto axis =
        std::find_if(axes.begin(), axes.end(), [&](const AxisInfo& a) { return a.symbol == term.rest; });
    if (axis == axes.end()) return std::nullopt;
    form.coefficients[static_cast<size_t>(axis - axes.begin())] = context.constant(term.coefficient);
  }
  return form;
}

// The digits as a number of their own: strides from 1.
std::vector<Digit> from_one(std::span<const Digit> digits, std::span<const AxisInfo> axes,
                            sym::Context& context) {
  std::vector<Digit> result;
  Expr stride = context.constant(1);
  for (const Digit& digit : digits) {
    result.push_back({digit.axis, stride});
    stride = stride * axes[digit.axis].extent;
  }
  return result;
}

}  // namespace

std::optional<LinearForm> linear_form(Expr expr, std::span<const AxisInfo> axes) {
  if (std::optional<LinearForm> plain = plain_form(expr, axes)) return plain;
  LinearForm form;
  Expr rest = expr;
  for (const AxisInfo& axis : axes) {
    std::optional<sym::Affine> affine = sym::affine_in(rest, axis.symbol);
    if (!affine) return std::nullopt;
    form.coefficients.push_back(affine->coefficient);
    rest = affine->rest;
  }
  for (const Expr& coefficient : form.coefficients)
    for (const AxisInfo& axis : axes)
      if (sym::mentions(coefficient, axis.symbol)) return std::nullopt;
  form.rest = rest;
  return form;
}

std::optional<std::vector<Digit>> dense_digits(Expr expr, std::span<const AxisInfo> axes,
                                               const sym::Facts& facts) {
  std::optional<LinearForm> form = linear_form(expr, axes);
  if (!form || !form->rest.is_constant(0)) return std::nullopt;
  std::vector<size_t> open;
  for (size_t k = 0; k < axes.size(); ++k)
    if (!form->coefficients[k].is_constant(0) && !axes[k].extent.is_constant(1)) open.push_back(k);
  std::vector<Digit> digits;
  Expr next = expr.context().constant(1);
  while (!open.empty()) {
    size_t found = open.size();
    for (size_t o = 0; o < open.size(); ++o)
      if (sym::provably_equal(form->coefficients[open[o]], next, facts)) found = o;
    if (found == open.size()) return std::nullopt;
    size_t axis = open[found];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(found));
    digits.push_back({axis, next});
    next = sym::mul(next, axes[axis].extent);
  }
  return digits;
}

std::optional<DigitRuns> digit_runs(Expr expr, std::span<const AxisInfo> axes, const sym::Facts& facts) {
  std::optional<LinearForm> form = linear_form(expr, axes);
  if (!form) return std::nullopt;
  std::vector<Expr> symbols;
  sym::collect_symbols(form->rest, symbols);
  for (Expr symbol : symbols)
    if (symbol.symbol().kind != sym::SymbolKind::size) return std::nullopt;
  std::vector<size_t> open;
  for (size_t k = 0; k < axes.size(); ++k)
    if (!form->coefficients[k].is_constant(0) && !axes[k].extent.is_constant(1)) open.push_back(k);
  sym::Context& context = expr.context();
  DigitRuns result{form->rest, {}};
  Expr span = context.constant(1);  // of the digits so far
  while (!open.empty()) {
    // The smallest stride that is left; it begins a run unless it goes on where the last digit ends.
    size_t found = 0;
    for (size_t o = 1; o < open.size(); ++o)
      if (sym::provably_less(form->coefficients[open[o]], form->coefficients[open[found]], facts)) found = o;
    const size_t axis = open[found];
    Expr stride = form->coefficients[axis];
    if (!sym::provably_less_equal(span, stride, facts)) return std::nullopt;
    if (result.runs.empty() || !sym::provably_equal(stride, span, facts))
      result.runs.push_back({stride, context.constant(1), {}});
    DigitRun& run = result.runs.back();
    run.digits.push_back({axis, run.count});
    run.count = sym::mul(run.count, axes[axis].extent);
    span = sym::mul(stride, axes[axis].extent);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(found));
  }
  return result;
}

Expr run_value(const DigitRun& run, std::span<const AxisInfo> axes) {
  Expr value;
  for (const Digit& digit : run.digits) {
    Expr term = sym::mul(axes[digit.axis].symbol, digit.stride);
    value = value.valid() ? sym::add(value, term) : term;
  }
  return value;
}

std::vector<sym::Substitution> invert(std::span<const Digit> digits, std::span<const AxisInfo> axes,
                                      Expr position, const sym::Facts& facts) {
  std::vector<sym::Substitution> map;
  for (size_t d = 0; d < digits.size(); ++d) {
    const AxisInfo& axis = axes[digits[d].axis];
    Expr value = sym::floor_div(position, digits[d].stride);
    if (d + 1 < digits.size()) value = sym::mod(value, axis.extent);
    map.push_back({axis.symbol, sym::simplify(value, facts)});
  }
  return map;
}

std::vector<sym::Substitution> match_digits(std::span<const Digit> digits, std::span<const AxisInfo> axes,
                                            std::span<const Digit> other_digits,
                                            std::span<const AxisInfo> others, const sym::Facts& facts) {
  std::vector<sym::Substitution> map;
  while (!digits.empty()) {
    size_t count = digits.size(), other_count = other_digits.size();  // up to the next stride that both have
    for (size_t d = digits.size(); d-- > 1;)
      for (size_t o = 1; o < other_digits.size(); ++o)
        if (digits[d].stride == other_digits[o].stride) count = d, other_count = o;
    if (count == 1 && other_count == 1) {
      map.push_back({axes[digits[0].axis].symbol, others[other_digits[0].axis].symbol});
    } else {
      sym::Context& context = digits[0].stride.context();
      const DigitRun other{{}, {}, from_one(other_digits.first(other_count), others, context)};
      Expr position = other_count == 0 ? context.constant(0) : run_value(other, others);
      for (sym::Substitution& s : invert(from_one(digits.first(count), axes, context), axes, position, facts))
        map.push_back(std::move(s));
    }
    digits = digits.subspan(count);
    other_digits = other_digits.subspan(other_count);
  }
  return map;
}

Expr extent_product(sym::Context& context, std::span<const AxisInfo> axes) {
  Expr result = context.constant(1);
  for (const AxisInfo& axis : axes) result = result * axis.extent;
  return result;
}

Expr row_major(sym::Context& context, std::span<const AxisInfo> axes) {
  Expr position = context.constant(0);
  for (const AxisInfo& axis : axes) position = position * axis.extent + axis.symbol;
  return position;
}

bool is_axis(Expr expr) { return expr.is_symbol() && expr.symbol().kind == sym::SymbolKind::axis; }

bool mentions_axis(Expr expr) {
  if (is_axis(expr)) return true;
  for (size_t i = 0; i < expr.size(); ++i)
    if (mentions_axis(expr.operand(i))) return true;
  return false;
}

std::optional<Shifted> shifted_axis(Expr expr) {
  if (is_axis(expr)) return std::nullopt;
  std::optional<Shifted> result;
  for (const sym::Term& term : sym::terms_of(expr)) {
    if (!is_axis(term.rest)) continue;
    if (result) return std::nullopt;
    result = Shifted{term.rest, term.coefficient, expr - term.rest * term.coefficient};
  }
  if (!result || mentions_axis(result->offset)) return std::nullopt;
  return result;
}

std::optional<Expr> stride_over(Expr expr, Expr symbol) {
  std::optional<sym::Affine> affine = sym::affine_in(expr, symbol);
  if (!affine) return std::nullopt;
  return affine->coefficient;
}

}  // namespace kerf::axis
