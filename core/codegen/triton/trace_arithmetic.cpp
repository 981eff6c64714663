// Operators: types, shapes, ranges and index forms of what they give.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codegen/triton/tracer.h"

namespace kerf::triton {

namespace {

// Narrower before wider; a float beside an integer wins.
int rank_of(DType dtype) {
  switch (dtype) {
    case DType::b1: return 0;
    case DType::u8: return 1;
    case DType::i8: return 2;
    case DType::i16: return 3;
    case DType::i32: return 4;
    case DType::i64: return 5;
    case DType::f16: return 6;
    case DType::bf16: return 7;
    case DType::f32: return 8;
    case DType::f64: return 9;
  }
  UNREACHABLE("dtype");
}

bool has_axis(const Trace& trace, const IndexForm& form) {
  return std::ranges::any_of(form.terms, [&](auto& term) { return trace.symbols[term.symbol].axis.valid(); });
}

// Of integers; nothing for operations about which ranges say nothing.
std::optional<Range> range_of(std::string_view operation, Range a, Range b) {
  if (operation == "+") return a + b;
  if (operation == "-") return a - b;
  if (operation == "*") return a * b;
  if (operation == "//") return floor_div(a, b);
  if (operation == "%") return modulo(a, b);
  if (operation == "cdiv") return ceil_div(a, b);
  if (operation == "minimum") return smaller(a, b);
  if (operation == "maximum") return larger(a, b);
  if (operation == "<<" && b.is_point() && b.low >= 0 && b.low < 62)
    return a * Range{int64_t{1} << b.low, int64_t{1} << b.low};
  if (operation == ">>" && b.is_point() && b.low >= 0 && b.low < 62)
    return floor_div(a, {int64_t{1} << b.low, int64_t{1} << b.low});
  return std::nullopt;
}

std::optional<bool> decide(std::string_view operation, Range a, Range b) {
  if (operation == ">" || operation == ">=") return decide(operation == ">" ? "<" : "<=", b, a);
  if (operation == "<")
    return a.high < b.low ? std::optional(true) : a.low >= b.high ? std::optional(false) : std::nullopt;
  if (operation == "<=")
    return a.high <= b.low ? std::optional(true) : a.low > b.high ? std::optional(false) : std::nullopt;
  bool are_apart = a.high < b.low || a.low > b.high;
  bool are_equal = a.is_point() && a == b;
  if (!are_apart && !are_equal) return std::nullopt;
  return operation == "==" ? are_equal : are_apart;
}

// The sum behind a product of which one factor varies: its coefficients are not known, and scalars are left out.
IndexForm with_symbolic_factors(const Trace& trace, const IndexForm& form) {
  IndexForm result{.is_affine = form.is_affine, .is_exact = false};
  for (const Term& term : form.terms)
    if (trace.symbols[term.symbol].axis.valid()) result.terms.push_back({term.symbol, 0, true});
  return result;
}

}  // namespace

DType Tracer::common_dtype(const Value& a, const Value& b) const {
  if (a.is_constant != b.is_constant) {  // numbers of the text take the other's type
    const Value& number = a.is_constant ? a : b;
    const Value& other = a.is_constant ? b : a;
    return is_floating(number.dtype) && !is_floating(other.dtype) ? DType::f32 : other.dtype;
  }
  bool are_halves = rank_of(a.dtype) + rank_of(b.dtype) == rank_of(DType::f16) + rank_of(DType::bf16);
  if (are_halves && a.dtype != b.dtype && is_floating(a.dtype) && is_floating(b.dtype)) return DType::f32;
  return rank_of(a.dtype) >= rank_of(b.dtype) ? a.dtype : b.dtype;
}

// Makes room for `value` in the dimensions so far.
bool Tracer::broadcast(std::vector<Dim>& dims, const Value& value, int line) {
  if (!value.is_tile()) return true;
  if (dims.empty()) return dims = value.dims, true;
  if (dims.size() != value.dims.size()) {
    fail(line, "shape",
         fmt::format("{} with {}: give both as many dimensions, by [:, None]", describe_dims(dims),
                     describe_dims(value.dims)));
    return false;
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim& other = value.dims[i];
    bool are_wide = dims[i].extent > 1 && other.extent > 1;
    if (are_wide && dims[i].extent != other.extent) {
      fail(line, "shape", fmt::format("{} does not fit {}", describe_dims(dims), describe_dims(value.dims)));
      return false;
    }
    bool are_named = dims[i].axis.valid() && other.axis.valid();
    if (are_wide && are_named && !trace_.same_axis(dims[i].axis, other.axis))
      fail(line, "order",
           fmt::format("dimension {} is axis {} here and axis {} there: permute one of the two", i,
                       trace_.axes[dims[i].axis].name, trace_.axes[other.axis].name));
    if (other.extent > dims[i].extent || (other.extent == dims[i].extent && !dims[i].axis.valid()))
      dims[i] = other;
  }
  return true;
}

// Range and form of an integer result whose type and dimensions are set.
void Tracer::set_index(Value& result, std::string_view operation, const Value& a, const Value& b) {
  if (is_floating(result.dtype) && !result.is_pointer) return;
  std::optional<Range> range = range_of(operation, a.range, b.range);
  result.range = range.value_or(result.dtype == DType::b1 ? Range{0, 1} : Range{});
  if (operation == "+" || operation == "-") {
    result.form = triton::add(a.form, b.form, operation == "+" ? 1 : -1);
    return;
  }
  if (operation == "*" && (a.range.is_point() || b.range.is_point())) {
    bool is_b = b.range.is_point();
    result.form = scale(is_b ? a.form : b.form, is_b ? b.range.low : a.range.low);
    return;
  }
  bool is_a_axis = !a.form.is_affine || has_axis(trace_, a.form);
  bool is_b_axis = !b.form.is_affine || has_axis(trace_, b.form);
  if (!is_a_axis && !is_b_axis)
    set_scalar(result, result.range);
  else if (operation == "*" && is_a_axis != is_b_axis)
    result.form = with_symbolic_factors(trace_, is_a_axis ? a.form : b.form);
  else
    result.form = not_affine();
}

std::optional<Value> Tracer::of_two(std::string_view operation, const Object& a, const Object& b, int line) {
  if (!a.is_value() || !b.is_value()) {
    bool is_known = a.kind != Object::Kind::unknown && b.kind != Object::Kind::unknown;
    if (is_known) fail(line, "unknown", fmt::format("{} is of numbers", operation));
    return std::nullopt;
  }
  Value result = derived(operation, line, {a.value, b.value});
  result.dims = at(a).dims;
  if (!broadcast(result.dims, at(b), line)) return std::nullopt;
  return result;
}

Object Tracer::binary(std::string_view operation, const Object& a, const Object& b, int line) {
  std::optional<Value> of_both = of_two(operation, a, b, line);
  if (!of_both) return {};
  Value& result = *of_both;
  const Value left = at(a);
  const Value right = at(b);
  if (left.is_pointer || right.is_pointer) {
    const Value& pointer = left.is_pointer ? left : right;
    bool is_offset = operation == "+" && left.is_pointer != right.is_pointer;
    if (!is_offset) return fail(line, "pointer", "a pointer takes an offset by `+` only");
    result.is_pointer = true;
    result.dtype = pointer.dtype;
    result.buffer = pointer.buffer;
  } else {
    result.dtype = common_dtype(left, right);
    if (operation == "/" && !is_floating(result.dtype)) result.dtype = DType::f32;
    result.is_constant = left.is_constant && right.is_constant;
  }
  set_index(result, operation, left, right);
  if (result.is_constant && !is_floating(result.dtype) && !result.range.is_point())
    result.is_constant = false;
  return add(std::move(result));
}

Object Tracer::compare(std::string_view operation, const Object& a, const Object& b, int line) {
  if (operation == "is" || operation == "is not") {
    bool is_none = a.kind == Object::Kind::none;
    return a.kind == Object::Kind::unknown ? Object{} : integer(is_none == (operation == "is") ? 1 : 0, line);
  }
  std::optional<Value> of_both = of_two(operation, a, b, line);
  if (!of_both) return {};
  Value& result = *of_both;
  const Value left = at(a);
  const Value right = at(b);
  result.dtype = DType::b1;
  result.range = {0, 1};
  bool are_integers = !is_floating(left.dtype) && !is_floating(right.dtype);
  std::optional<bool> known = are_integers ? decide(operation, left.range, right.range) : std::nullopt;
  if (known) result.range = *known ? Range{1, 1} : Range{0, 0};
  result.is_constant = known && left.is_constant && right.is_constant;
  result.form = not_affine();
  return add(std::move(result));
}

Object Tracer::unary(std::string_view operation, const Object& a, int line) {
  if (!a.is_value()) return {};
  const Value operand = at(a);
  if (operation == "+") return a;
  Value result = operand;
  result.operation = operation == "-" ? "neg" : std::string(operation);
  result.line = line;
  result.operands = {a.value};
  if (operation == "-") {
    result.range = Range{0, 0} - operand.range;
    result.form = scale(operand.form, -1);
  } else {
    bool is_truth = operation == "not" || operand.dtype == DType::b1;
    if (operation == "not") result.dtype = DType::b1;
    result.range = is_truth ? Range{0, 1} : Range{};
    if (is_truth && operand.range.is_point())
      result.range = operand.range.low != 0 ? Range{0, 0} : Range{1, 1};
    result.is_constant = operand.is_constant && result.range.is_point();
    result.form = not_affine();
    if (!result.is_tile()) set_scalar(result, result.range);
  }
  return add(std::move(result));
}

Object Tracer::cast(const Object& a, DType dtype, int line) {
  if (!a.is_value()) return {};
  const Value operand = at(a);
  Value result = operand;
  result.operation = "to";
  result.line = line;
  result.operands = {a.value};
  result.dtype = dtype;
  result.is_constant = false;
  bool are_integers = !is_floating(operand.dtype) && !is_floating(dtype);
  if (!are_integers) {
    result.range = {};
    result.form = not_affine();
    if (!result.is_tile()) set_scalar(result, {});
  }
  return add(std::move(result));
}

}  // namespace kerf::triton
