// Means and maxima over windows that divide a dimension into so many parts: part o of O goes from floor(o * I / O) to
// ceil((o + 1) * I / O) - 1.
#include <limits>

#include "graph/import_call.h"
#include "graph/largest.h"
#include "sym/simplify.h"

namespace kerf::graph {

namespace {

struct Parts {
  sym::Expr in, out;
  sym::Expr each;  // elements of a part where all parts are equal, else invalid
};

Result<std::vector<Parts>> read_parts(const ImportCall& call, const TensorType& in, const TensorType& out) {
  if (!is_floating(in.dtype)) return decline("of {}", to_text(in.dtype));
  auto dims = static_cast<size_t>(call.row.number);
  Shape sizes = last_sizes(in, dims), counts = last_sizes(out, dims);
  std::vector<Parts> parts;
  for (size_t d = 0; d < dims; ++d) {
    for (sym::Expr size : {sizes[d], counts[d]})
      if (!sym::provably_less(call.constant(0), size, call.facts())) return decline("a size that may be 0");
    Parts part{sizes[d], counts[d], {}};
    if (sym::simplify(sym::mod(part.in, part.out), call.facts()).is_constant(0))
      part.each = sym::simplify(sym::floor_div(part.in, part.out), call.facts());
    parts.push_back(part);
  }
  return parts;
}

// For each part, its elements; the last may be beyond it.
std::vector<Windows> elements_of(const ImportCall& call, const std::vector<Parts>& parts) {
  std::vector<Windows> windows;
  sym::Expr zero = call.constant(0), one = call.constant(1);
  for (const Parts& part : parts) {
    if (part.each.valid())
      windows.push_back({part.out, part.each, part.each, zero, one, one});
    else
      windows.push_back({part.out, longest_part(part.in, part.out), part.in, zero, part.out, one});
  }
  return windows;
}

// For each element, the parts that contain it, from the last down; there may be one too many.
std::vector<Windows> parts_with(const ImportCall& call, const std::vector<Parts>& parts) {
  std::vector<Windows> windows;
  sym::Expr zero = call.constant(0), one = call.constant(1), back = call.constant(-1);
  for (const Parts& part : parts) {
    if (part.each.valid())
      windows.push_back({part.in, one, one, zero, part.each, back});
    else
      windows.push_back({part.in, longest_part(part.out, part.in), part.out, part.out - 1, part.in, back});
  }
  return windows;
}

// Whether element i lies before the end of part o: i * O < (o + 1) * I.
Term before_end(const ImportCall& call, const Parts& part, const Term& element, const Term& index) {
  Term in = call.term(call.builder.size_value(part.in)), out = call.term(call.builder.size_value(part.out));
  return less(element * out, (index + 1.0) * in);
}

// Whether what windows of `elements_of` see along `d` belongs to their part.
Term belongs(const ImportCall& call, const std::vector<Parts>& parts, size_t d) {
  Term element = window_positions(call.builder, elements_of(call, parts), d, parts[d].in, call.constant(0),
                                  call.constant(1), kNoPosition);
  element = where(less(element, kNoPosition), element, call.term(call.builder.size_value(parts[d].in)));
  return before_end(call, parts[d], element, own_positions(call.builder, parts[d].out, d, 2 * parts.size()));
}

// Means of sums over equal parts, which are divided by one number.
Term divided_by_each(const ImportCall& call, const Term& total, const std::vector<Parts>& parts) {
  sym::Expr elements = call.constant(1);
  for (const Parts& part : parts)
    if (part.each.valid()) elements = elements * part.each;
  if (elements.is_constant(1)) return total;
  if (elements.is_constant())
    return total / call.term(call.builder.constant(Scalar::of_int(total.dtype(), elements.constant())));
  return total / call.term(call.builder.size_value(elements)).in(total.dtype());
}

// Divided by the numbers of elements of those parts that are not equal.
Term divided_by_sizes(const ImportCall& call, Term value, const std::vector<Parts>& parts) {
  for (size_t d = 0; d < parts.size(); ++d) {
    if (parts[d].each.valid()) continue;
    Term inside = belongs(call, parts, d).in(DType::i64);
    value = value / sum(inside, window_dims(inside, parts.size()), false).in(value.dtype());
  }
  return value;
}

// What the parts see of x, `outside` standing for what does not belong to them.
Term seen_by(const ImportCall& call, const Term& x, const std::vector<Parts>& parts, double outside) {
  Term seen = window(x, elements_of(call, parts), outside).computing();
  for (size_t d = 0; d < parts.size(); ++d)
    if (!parts[d].each.valid()) seen = where(belongs(call, parts, d), seen, outside);
  return seen;
}

}  // namespace

// self, output_size
Imported import_adaptive_avg_pool(const ImportCall& call) {
  Term x = call.tensor(0);
  Result<std::vector<Parts>> read = read_parts(call, x.type(), call.result());
  if (!read) return Unsupported{read.reason()};
  const std::vector<Parts>& parts = *read;
  Term seen = seen_by(call, x, parts, 0);
  Term total = sum(seen, window_dims(seen, parts.size()), false);
  return rounded(call, divided_by_each(call, divided_by_sizes(call, total, parts), parts));
}

// grad, self
Imported import_adaptive_avg_pool_backward(const ImportCall& call) {
  Term grad = call.tensor(0).computing();
  Result<std::vector<Parts>> read = read_parts(call, call.result(), grad.type());
  if (!read) return Unsupported{read.reason()};
  const std::vector<Parts>& parts = *read;
  std::vector<Windows> windows = parts_with(call, parts);
  Term share = window(divided_by_sizes(call, grad, parts), windows, 0);
  for (size_t d = 0; d < parts.size(); ++d) {
    if (parts[d].each.valid()) continue;
    Term index =
        window_positions(call.builder, windows, d, parts[d].out, call.constant(0), call.constant(1), -1);
    Term own = own_positions(call.builder, parts[d].in, d, 2 * parts.size());
    share = where(before_end(call, parts[d], own, index), share, 0.0);
  }
  Term total = sum(share, window_dims(share, parts.size()), false);
  return rounded(call, divided_by_each(call, total, parts));
}

// self, output_size: values, positions
Imported import_adaptive_max_pool(const ImportCall& call) {
  Term x = call.tensor(0);
  Result<std::vector<Parts>> read = read_parts(call, x.type(), call.result());
  if (!read) return Unsupported{read.reason()};
  Term seen = seen_by(call, x, *read, -std::numeric_limits<double>::infinity());
  Largest found = largest_of(seen, elements_of(call, *read), last_sizes(x.type(), read->size()));
  return std::vector<ValueId>{found.values.in(x.dtype()), found.positions};
}

// grad, self, indices. A part that does not contain an element has not chosen it.
Imported import_adaptive_max_pool_backward(const ImportCall& call) {
  Term grad = call.tensor(0), positions = call.tensor(2);
  Result<std::vector<Parts>> read = read_parts(call, call.result(), grad.type());
  if (!read) return Unsupported{read.reason()};
  return rounded(call, gradient_of_largest(grad, positions, parts_with(call, *read),
                                           last_sizes(call.result(), read->size())));
}

}  // namespace kerf::graph
