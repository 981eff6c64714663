// Calls of tl, libdevice and Python's own functions.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "codegen/triton/tracer.h"

namespace kerf::triton {

namespace {

constexpr std::string_view kModules[] = {"tl.math.", "tl.extra.libdevice.", "tl.", "libdevice.", "triton."};

// "tl.math.exp" is "exp"; empty for what is not a function of these modules.
std::string_view last_name(std::string_view name) {
  for (std::string_view module : kModules)
    if (name.starts_with(module)) return name.substr(module.size());
  return {};
}

int64_t product(const std::vector<int64_t>& extents) {
  int64_t result = 1;
  for (int64_t extent : extents) result *= extent;
  return result;
}

}  // namespace

Object Tracer::call(const std::string& name, const Arguments& arguments, int line) {
  for (const Object& item : arguments.items)
    if (item.kind == Object::Kind::unknown) return {};
  std::string_view function_name = last_name(name);
  if (function_name.empty()) return call_builtin(name, arguments, line);
  const TlFunction* function = find_tl_function(function_name);
  if (!function)
    return fail(line, "unknown",
                fmt::format("{} is not a function that kernels call: tl_functions.def has them", name));
  bool needs_argument = function->form != CallForm::nothing && function->form != CallForm::program_id &&
                        function->form != CallForm::num_programs;
  if (needs_argument && arguments.items.empty())
    return fail(line, "unknown", fmt::format("{} needs arguments", name));
  switch (function->form) {
    case CallForm::program_id:
    case CallForm::num_programs: {
      bool is_count = function->form == CallForm::num_programs;
      Value value = derived(function_name, line, {});
      const Object* axis = arguments.find(0, "axis");
      value.folded = is_constant(axis) ? constant(*axis) : 0;
      int64_t most = most_programs();
      set_scalar(value, is_count ? Range{1, most} : Range{0, most == Range::kUnbounded ? most : most - 1});
      return add(std::move(value));
    }
    case CallForm::arange: return arange(arguments, line);
    case CallForm::load: return load(arguments, line);
    case CallForm::store: return store(arguments, line);
    case CallForm::create: return create(std::string(function_name), arguments, line);
    case CallForm::cast: {
      const Object* dtype = arguments.find(1, "dtype");
      if (!dtype || dtype->kind != Object::Kind::dtype)
        return fail(line, "unknown", "a cast needs a dtype such as tl.float32");
      Object result = cast(arguments.items[0], dtype->dtype, line);
      if (result.is_value() && dtype->text.starts_with("uint"))
        trace_.values[result.value].operation = "to " + dtype->text;
      return result;
    }
    case CallForm::cdiv:
      return arguments.items.size() == 2 ? binary("cdiv", arguments.items[0], arguments.items[1], line)
                                         : fail(line, "unknown", "tl.cdiv takes two numbers");
    case CallForm::where: return where(arguments, line);
    case CallForm::same:
    case CallForm::floating:
    case CallForm::test:
    case CallForm::elementwise:
    case CallForm::scan:
    case CallForm::random: return elementwise(*function, arguments, line);
    case CallForm::fold:
    case CallForm::position:
    case CallForm::reduce: return fold(*function, arguments, line);
    case CallForm::dot: return dot(arguments, line);
    case CallForm::permute: return permute(arguments, line);
    case CallForm::reshape: return reshape(std::string(function_name), arguments, line);
    case CallForm::expand_dims: return expand_dims(arguments, line);
    case CallForm::split: return split(arguments, line);
    case CallForm::join: return join(arguments, line);
    case CallForm::hint: return arguments.items[0];
    case CallForm::atomic: {
      Object result = elementwise(*function, arguments, line);
      if (result.is_value()) trace_.values[result.value].is_pointer = false;
      return result;
    }
    case CallForm::assertion: {
      if (!arguments.items[0].is_value()) return {Object::Kind::none};
      Value value = derived(function_name, line, {arguments.items[0].value});
      value.is_nothing = true;
      add(std::move(value));
      return {Object::Kind::none};
    }
    case CallForm::nothing: return {Object::Kind::none};
  }
  UNREACHABLE("form of call");
}

// float("-inf"), min(a, b) and such, of scalars.
Object Tracer::call_builtin(const std::string& name, const Arguments& arguments, int line) {
  const auto& items = arguments.items;
  if (name == "float" && items.size() == 1) {
    if (items[0].kind == Object::Kind::text)
      return floating(std::strtod(items[0].text.c_str(), nullptr), line);
    return cast(items[0], DType::f32, line);
  }
  if ((name == "min" || name == "max") && items.size() == 2)
    return binary(name == "min" ? "minimum" : "maximum", items[0], items[1], line);
  if (name == "len" && items.size() == 1) return integer(static_cast<int64_t>(items[0].items.size()), line);
  return fail(line, "unknown", fmt::format("{} cannot be called in a kernel", name));
}

// --- memory

Object Tracer::arange(const Arguments& arguments, int line) {
  bool is_valid = arguments.items.size() == 2 && is_constant(&arguments.items[0]) &&
                  is_constant(&arguments.items[1]) &&
                  constant(arguments.items[0]) < constant(arguments.items[1]);
  if (!is_valid) return fail(line, "shape", "tl.arange takes two constants, the first one smaller");
  int64_t begin = constant(arguments.items[0]);
  int64_t extent = constant(arguments.items[1]) - begin;
  AxisId axis = trace_.axes.push_back({.line = line});
  SymbolId symbol = new_symbol({0, extent - 1}, axis);
  trace_.axes[axis].symbol = symbol;
  Value value = derived("arange", line, {});
  value.dims = {{extent, axis}};
  value.range = {begin, begin + extent - 1};
  value.form.constant = begin;
  value.form.terms.push_back({symbol});
  return add(std::move(value));
}

void Tracer::check_access(Access& access, const Arguments& arguments, size_t mask_position, int line) {
  access.is_guarded = guards_ > 0;
  const Object* mask = arguments.find(mask_position, "mask");
  if (!mask || !mask->is_value()) return;
  access.mask = mask->value;
  std::vector<Dim> dims = trace_.values[access.pointer].dims;
  broadcast(dims, at(*mask), line);
  if (describe_dims(dims) != describe_dims(trace_.values[access.pointer].dims))
    fail(line, "shape",
         fmt::format("the mask is {}, the pointer {}", describe_dims(at(*mask).dims),
                     describe_dims(trace_.values[access.pointer].dims)));
}

Object Tracer::load(const Arguments& arguments, int line) {
  const Object& pointer = arguments.items[0];
  if (!pointer.is_value() || !at(pointer).is_pointer) return fail(line, "pointer", "tl.load takes a pointer");
  Access access{.pointer = pointer.value};
  check_access(access, arguments, 1, line);
  const Object* other = arguments.find(2, "other");
  if (other && other->is_value()) access.other = other->value;
  if (access.mask.valid() && !access.other.valid())
    fail(line, "mask", "a masked load says what the other lanes hold: other=...");
  Value value = derived("load", line, {pointer.value});
  value.dtype = at(pointer).dtype;
  value.dims = at(pointer).dims;
  value.buffer = at(pointer).buffer;
  value.form = not_affine();
  if (!value.is_tile()) set_scalar(value, {});
  Object result = add(std::move(value));
  access.at = result.value;
  trace_.accesses.push_back(access);
  return result;
}

Object Tracer::store(const Arguments& arguments, int line) {
  const Object& pointer = arguments.items[0];
  if (!pointer.is_value() || !at(pointer).is_pointer)
    return fail(line, "pointer", "tl.store takes a pointer");
  const Object* stored = arguments.find(1, "value");
  if (!stored || !stored->is_value()) return {};
  Access access{.is_store = true, .pointer = pointer.value, .value = stored->value};
  check_access(access, arguments, 2, line);
  std::vector<Dim> dims = at(pointer).dims;
  if (broadcast(dims, at(*stored), line) && describe_dims(dims) != describe_dims(at(pointer).dims))
    fail(line, "shape",
         fmt::format("the value is {}, the pointer {}", describe_dims(at(*stored).dims),
                     describe_dims(at(pointer).dims)));
  Value value = derived("store", line, {pointer.value, stored->value});
  value.is_nothing = true;
  value.dtype = at(pointer).dtype;
  value.dims = at(pointer).dims;
  value.buffer = at(pointer).buffer;
  access.at = add(std::move(value)).value;
  trace_.accesses.push_back(access);
  return {Object::Kind::none};
}

// zeros(shape, dtype), full(shape, value, dtype)
Object Tracer::create(const std::string& name, const Arguments& arguments, int line) {
  std::vector<int64_t> extents = shape(arguments.items[0]);
  bool is_scalar = arguments.items[0].kind == Object::Kind::tuple && arguments.items[0].items.empty();
  if (extents.empty() && !is_scalar)
    return fail(line, "shape", fmt::format("tl.{} takes a shape of constants", name));
  const Object* dtype = arguments.find(name == "full" ? 2 : 1, "dtype");
  if (!dtype || dtype->kind != Object::Kind::dtype)
    return fail(line, "unknown", fmt::format("tl.{} needs a dtype", name));
  Value value = derived(name, line, {});
  value.dtype = dtype->dtype;
  for (int64_t extent : extents) value.dims.push_back({extent});
  const Object* number = name == "full" ? arguments.find(1, "value") : nullptr;
  if (number && number->is_value()) value.operands.push_back(number->value);
  value.form = not_affine();
  return add(std::move(value));
}

// --- elementwise

Object Tracer::elementwise(const TlFunction& function, const Arguments& arguments, int line) {
  Value result = derived(function.name, line, {});
  std::optional<Value> common;
  for (const Object& item : arguments.items) {
    if (!item.is_value()) continue;
    const Value& operand = at(item);
    if (!broadcast(result.dims, operand, line)) return {};
    if (!common) common = operand;
    common->dtype = common_dtype(*common, operand);
    common->is_constant &= operand.is_constant;
    result.operands.push_back(item.value);
  }
  if (!common) return {};
  result.dtype = common->dtype;
  result.keeps_nan = arguments.find(2, "propagate_nan") != nullptr;
  bool is_float = function.form == CallForm::floating || function.form == CallForm::random;
  if (is_float && !is_floating(result.dtype)) result.dtype = DType::f32;
  if (function.form == CallForm::test) result.dtype = DType::b1;
  bool is_pair = result.operands.size() == 2;
  if (is_pair) {
    const Value a = trace_.values[result.operands[0]];
    const Value b = trace_.values[result.operands[1]];
    set_index(result, function.name, a, b);
    result.is_constant =
        a.is_constant && b.is_constant && !is_floating(result.dtype) && result.range.is_point();
  } else {
    result.form = not_affine();
    if (!result.is_tile()) set_scalar(result, {});
  }
  return add(std::move(result));
}

Object Tracer::where(const Arguments& arguments, int line) {
  if (arguments.items.size() != 3) return fail(line, "unknown", "tl.where takes a condition and two values");
  for (const Object& item : arguments.items)
    if (!item.is_value()) return {};
  const Value condition = at(arguments.items[0]);
  const Value a = at(arguments.items[1]);
  const Value b = at(arguments.items[2]);
  Value result =
      derived("where", line, {arguments.items[0].value, arguments.items[1].value, arguments.items[2].value});
  for (const Value* operand : {&condition, &a, &b})
    if (!broadcast(result.dims, *operand, line)) return {};
  result.dtype = common_dtype(a, b);
  result.range = hull(a.range, b.range);
  result.form = not_affine();
  if (!result.is_tile()) set_scalar(result, result.range);
  return add(std::move(result));
}

// --- over axes

Object Tracer::fold(const TlFunction& function, const Arguments& arguments, int line) {
  const Object& operand = arguments.items[0];
  if (operand.kind != Object::Kind::tuple)
    return operand.is_value() ? fold_value(function, arguments, operand.value, line) : Object{};
  Object result{Object::Kind::tuple};
  for (const Object& item : operand.items) {
    if (!item.is_value()) return {};
    result.items.push_back(fold_value(function, arguments, item.value, line));
    if (!result.items.back().is_value()) return {};
    for (const Object& other : operand.items)
      if (other.value != item.value) trace_.values[result.items.back().value].operands.push_back(other.value);
  }
  return result;
}

Object Tracer::fold_value(const TlFunction& function, const Arguments& arguments, ValueId id, int line) {
  Value result = trace_.values[id];
  const Object* axis = arguments.find(1, "axis");
  const Object* keep = arguments.find(2, "keep_dims");
  bool keeps = is_constant(keep) && constant(*keep) != 0;
  result.operation = function.name;
  result.line = line;
  result.operands = {id};
  auto rank = static_cast<int64_t>(result.dims.size());
  if (rank == 0) return fail(line, "shape", fmt::format("tl.{} folds tiles", function.name));
  if (!axis) {
    result.dims.clear();
  } else {
    bool is_valid = is_constant(axis) && constant(*axis) >= -rank && constant(*axis) < rank;
    if (!is_valid)
      return fail(line, "shape", fmt::format("the axis of tl.{} is a dimension of its tile", function.name));
    result.folded = constant(*axis) + (constant(*axis) < 0 ? rank : 0);
    auto at_axis = result.dims.begin() + static_cast<std::ptrdiff_t>(result.folded);
    if (keeps)
      *at_axis = {};
    else
      result.dims.erase(at_axis);
  }
  bool widens = function.name == "sum" && !is_floating(result.dtype) && byte_size(result.dtype) < 4;
  if (widens || function.form == CallForm::position) result.dtype = DType::i32;
  result.is_constant = false;
  result.form = not_affine();
  result.range = {};
  if (!result.is_tile()) set_scalar(result, {});
  Object folded = add(std::move(result));
  const Object* indices = arguments.find(2, "return_indices");
  if (!is_constant(indices) || constant(*indices) == 0) return folded;
  Value position = at(folded);
  position.operation = "argmax";
  position.dtype = DType::i32;
  if (!position.is_tile()) set_scalar(position, {});
  return {.kind = Object::Kind::tuple, .items = {folded, add(std::move(position))}};
}

Object Tracer::dot(const Arguments& arguments, int line) {
  if (arguments.items.size() < 2 || !arguments.items[0].is_value() || !arguments.items[1].is_value())
    return {};
  const Value a = at(arguments.items[0]);
  const Value b = at(arguments.items[1]);
  bool fits = a.dims.size() == 2 && b.dims.size() == 2 && a.dims[1].extent == b.dims[0].extent;
  if (!fits)
    return fail(line, "shape",
                fmt::format("tl.dot of {} and {}", describe_dims(a.dims), describe_dims(b.dims)));
  Value result = derived("dot", line, {arguments.items[0].value, arguments.items[1].value});
  const Object* accumulator = arguments.find(2, "acc");
  if (accumulator && accumulator->is_value()) result.operands.push_back(accumulator->value);
  result.dtype = is_floating(a.dtype) ? DType::f32 : DType::i32;
  result.dims = {a.dims[0], b.dims[1]};
  result.form = not_affine();
  return add(std::move(result));
}

// --- shapes

Object Tracer::permute(const Arguments& arguments, int line) {
  const Object& operand = arguments.items[0];
  if (!operand.is_value()) return {};
  Value result = at(operand);
  size_t rank = result.dims.size();
  std::vector<int64_t> order;
  for (size_t i = 1; i < arguments.items.size(); ++i)
    for (int64_t dim : shape(arguments.items[i])) order.push_back(dim);
  if (const Object* dims = arguments.find(1, "dims"); dims && order.empty()) order = shape(*dims);
  if (order.empty() && rank == 2) order = {1, 0};
  std::vector<int64_t> sorted = order;
  std::ranges::sort(sorted);
  bool is_permutation = order.size() == rank;
  for (size_t i = 0; i < rank && is_permutation; ++i) is_permutation = sorted[i] == static_cast<int64_t>(i);
  if (!is_permutation) return fail(line, "shape", "a permutation names each dimension once");
  std::vector<Dim> dims = result.dims;
  for (size_t i = 0; i < rank; ++i) result.dims[i] = dims[static_cast<size_t>(order[i])];
  result.operation = "permute";
  result.line = line;
  result.operands = {operand.value};
  return add(std::move(result));
}

// reshape and broadcast_to: the latter keeps the axes of dimensions that it does not repeat.
Object Tracer::reshape(const std::string& name, const Arguments& arguments, int line) {
  const Object& operand = arguments.items[0];
  if (!operand.is_value()) return {};
  std::vector<int64_t> extents;
  for (size_t i = 1; i < arguments.items.size(); ++i)
    for (int64_t extent : shape(arguments.items[i])) extents.push_back(extent);
  bool is_scalar = arguments.items[0].kind == Object::Kind::tuple && arguments.items[0].items.empty();
  if (extents.empty() && !is_scalar)
    return fail(line, "shape", fmt::format("tl.{} takes a shape of constants", name));
  Value result = at(operand);
  if (name == "reshape" && product(extents) != elements_of(result))
    return fail(line, "shape",
                fmt::format("{} has {} elements, the new shape {}", describe_dims(result.dims),
                            elements_of(result), product(extents)));
  bool is_broadcast = name == "broadcast_to" && result.dims.size() == extents.size();
  std::vector<Dim> dims;
  for (size_t i = 0; i < extents.size(); ++i)
    dims.push_back(is_broadcast && result.dims[i].extent == extents[i] ? result.dims[i] : Dim{extents[i]});
  result.dims = std::move(dims);
  result.operation = name;
  result.line = line;
  result.operands = {operand.value};
  if (!is_broadcast) result.form = not_affine();
  return add(std::move(result));
}

// The two halves along the last dimension, which has two elements.
Object Tracer::split(const Arguments& arguments, int line) {
  const Object& operand = arguments.items[0];
  if (!operand.is_value()) return {};
  Value half = at(operand);
  if (!half.is_tile() || half.dims.back().extent != 2)
    return fail(line, "shape",
                fmt::format("tl.split of {}: the last dimension has two elements", describe_dims(half.dims)));
  half.dims.pop_back();
  half.operation = "split";
  half.line = line;
  half.operands = {operand.value};
  half.form = not_affine();
  Object first = add(half);
  return {.kind = Object::Kind::tuple, .items = {first, add(std::move(half))}};
}

// Two tiles of one type along a new last dimension.
Object Tracer::join(const Arguments& arguments, int line) {
  if (arguments.items.size() != 2) return fail(line, "shape", "tl.join takes two tiles");
  std::optional<Value> both = of_two("join", arguments.items[0], arguments.items[1], line);
  if (!both) return {};
  const Value& a = at(arguments.items[0]);
  if (a.dtype != at(arguments.items[1]).dtype)
    return fail(line, "dtype",
                fmt::format("tl.join of {} and {}: cast one of the two", to_text(a.dtype),
                            to_text(at(arguments.items[1]).dtype)));
  both->dtype = a.dtype;
  both->dims.push_back({2});
  both->form = not_affine();
  return add(std::move(*both));
}

Object Tracer::expand_dims(const Arguments& arguments, int line) {
  const Object& operand = arguments.items[0];
  const Object* axis = arguments.find(1, "axis");
  if (!operand.is_value()) return {};
  Value result = at(operand);
  auto rank = static_cast<int64_t>(result.dims.size());
  bool is_valid = is_constant(axis) && constant(*axis) >= 0 && constant(*axis) <= rank;
  if (!is_valid) return fail(line, "shape", "tl.expand_dims takes the place of the new dimension");
  result.dims.insert(result.dims.begin() + static_cast<std::ptrdiff_t>(constant(*axis)), Dim{});
  result.operation = "[]";
  result.line = line;
  result.operands = {operand.value};
  return add(std::move(result));
}

}  // namespace kerf::triton
