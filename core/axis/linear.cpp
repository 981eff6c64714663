#include "axis/linear.h"

#include "sym/simplify.h"

namespace kerf::axis {

using sym::Expr;

std::optional<LinearForm> linear_form(Expr expr, std::span<const AxisInfo> axes) {
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

std::optional<Expr> stride_over(Expr expr, Expr symbol) {
  std::optional<sym::Affine> affine = sym::affine_in(expr, symbol);
  if (!affine) return std::nullopt;
  return affine->coefficient;
}

}  // namespace kerf::axis
