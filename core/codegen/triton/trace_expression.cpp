// Expressions: what a piece of the tree stands for.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codegen/triton/tracer.h"

namespace kerf::triton {

namespace {

constexpr int kMostNestedCalls = 16;

}  // namespace

const Object* Arguments::find(size_t position, std::string_view keyword) const {
  const Object* found = position < items.size() ? &items[position] : nullptr;
  for (const auto& [name, object] : keywords)
    if (name == keyword) found = &object;
  return found && found->kind != Object::Kind::none ? found : nullptr;
}

Object Tracer::fail(int line, std::string_view rule, std::string message) {
  trace_.violations.push_back({line, std::string(rule), std::move(message)});
  return {};
}

Object Tracer::add(Value value) {
  value.loop = loop_;
  return {.kind = Object::Kind::value, .value = trace_.values.push_back(std::move(value))};
}

Value Tracer::derived(std::string_view operation, int line, std::initializer_list<ValueId> operands) const {
  return {.operation = std::string(operation), .line = line, .operands = operands};
}

Object Tracer::integer(int64_t value, int line) {
  Value result = derived("constant", line, {});
  result.is_constant = true;
  result.range = {value, value};
  result.form.constant = value;
  return add(std::move(result));
}

Object Tracer::floating(double value, int line) {
  Value result = derived("constant", line, {});
  result.is_constant = true;
  result.number = value;
  result.dtype = DType::f32;
  return add(std::move(result));
}

SymbolId Tracer::new_symbol(Range range, AxisId axis) { return trace_.symbols.push_back({range, axis}); }

void Tracer::set_scalar(Value& value, Range range) {
  value.range = range;
  value.form = {};
  if (is_floating(value.dtype)) return;
  if (range.is_point())
    value.form.constant = range.low;
  else
    value.form.terms.push_back({new_symbol(range)});
}

bool Tracer::is_constant(const Object* object) const {
  return object && object->is_value() && at(*object).is_constant && !is_floating(at(*object).dtype);
}

std::vector<int64_t> Tracer::shape(const Object& object) const {
  std::vector<int64_t> extents;
  if (is_constant(&object)) return {constant(object)};
  for (const Object& item : object.items) {
    if (!is_constant(&item)) return {};
    extents.push_back(constant(item));
  }
  return extents;
}

Object Tracer::evaluate(ExpressionId id) {
  const Expression& expression = file_.expressions[id];
  int line = expression.line;
  switch (expression.kind) {
    case ExpressionKind::name: return evaluate_name(expression);
    case ExpressionKind::integer: return integer(expression.integer, line);
    case ExpressionKind::floating: return floating(expression.floating, line);
    case ExpressionKind::string: return {.kind = Object::Kind::text, .text = expression.text};
    case ExpressionKind::constant: {
      if (expression.text == "None") return {Object::Kind::none};
      Object value = integer(expression.text == "True" ? 1 : 0, line);
      trace_.values[value.value].dtype = DType::b1;
      return value;
    }
    case ExpressionKind::attribute: return evaluate_attribute(expression);
    case ExpressionKind::call: return evaluate_call(expression);
    case ExpressionKind::subscript: return evaluate_subscript(expression);
    case ExpressionKind::unary: return unary(expression.text, evaluate(expression.operands[0]), line);
    case ExpressionKind::binary:
    case ExpressionKind::comparison: {
      Object a = evaluate(expression.operands[0]);
      Object b = evaluate(expression.operands[1]);
      bool is_binary = expression.kind == ExpressionKind::binary;
      return is_binary ? binary(expression.text, a, b, line) : compare(expression.text, a, b, line);
    }
    case ExpressionKind::conditional: return evaluate_conditional(expression);
    case ExpressionKind::tuple:
    case ExpressionKind::list: {
      Object result{Object::Kind::tuple};
      for (ExpressionId item : expression.operands) result.items.push_back(evaluate(item));
      return result;
    }
    case ExpressionKind::slice:
    case ExpressionKind::dictionary: return fail(line, "syntax", "this has no place in a kernel");
  }
  UNREACHABLE("kind of expression");
}

Object Tracer::evaluate_name(const Expression& expression) {
  const std::string& name = expression.text;
  auto found = names_.find(name);
  if (found != names_.end()) return found->second;
  if (lost_.contains(name))
    return fail(expression.line, "undefined",
                fmt::format("{} has a value only inside a loop or one way of an `if`", name));
  bool is_known = name == "tl" || name == "libdevice" || name == "triton" || name == "range" ||
                  name == "min" || name == "max" || name == "float" || name == "int" || name == "abs" ||
                  name == "len";
  bool is_function = std::ranges::find(file_.functions, name, &Function::name) != file_.functions.end();
  if (is_known || is_function) return {.kind = Object::Kind::name, .text = name};
  return fail(expression.line, "undefined", fmt::format("{} has no value yet", name));
}

Object Tracer::evaluate_attribute(const Expression& expression) {
  Object base = evaluate(expression.operands[0]);
  const std::string& name = expression.text;
  if (base.kind == Object::Kind::name) {
    std::optional<DType> dtype = dtype_from_torch(name);
    if (name == "int1") dtype = DType::b1;
    if (name == "uint16" || name == "uint32") dtype = DType::i32;
    if (name == "uint64") dtype = DType::i64;
    if (base.text == "tl" && dtype) return {.kind = Object::Kind::dtype, .dtype = *dtype, .text = name};
    return {.kind = Object::Kind::name, .text = base.text + "." + name};
  }
  if (base.is_value() && name == "dtype") return {.kind = Object::Kind::dtype, .dtype = at(base).dtype};
  if (base.kind == Object::Kind::dtype && name == "element_ty") return base;
  if (base.is_value() && name == "shape") {
    Object result{Object::Kind::tuple};
    for (const Dim& dim : std::vector<Dim>(at(base).dims))
      result.items.push_back(integer(dim.extent, expression.line));
    return result;
  }
  if (base.kind == Object::Kind::unknown) return base;
  return fail(expression.line, "unknown", fmt::format("no attribute '{}' here", name));
}

// `x[:, None]`, `shape[0]`.
Object Tracer::evaluate_subscript(const Expression& expression) {
  Object base = evaluate(expression.operands[0]);
  if (base.kind == Object::Kind::tuple) {
    Object index = evaluate(expression.operands[1]);
    bool is_inside = is_constant(&index) && constant(index) >= 0 &&
                     constant(index) < static_cast<int64_t>(base.items.size());
    if (is_inside) return base.items[static_cast<size_t>(constant(index))];
    return fail(expression.line, "shape", "this index is outside of the tuple");
  }
  if (!base.is_value()) return {};
  Value result = at(base);
  std::vector<Dim> dims;
  size_t taken = 0;
  for (size_t i = 1; i < expression.operands.size(); ++i) {
    const Expression& item = file_.expressions[expression.operands[i]];
    if (item.kind == ExpressionKind::slice && taken < result.dims.size()) {
      dims.push_back(result.dims[taken++]);
    } else if (item.kind == ExpressionKind::constant && item.text == "None") {
      dims.push_back({});
    } else {
      return fail(expression.line, "shape",
                  "a tile takes `:` for each of its dimensions and `None` for new ones");
    }
  }
  if (taken != result.dims.size())
    return fail(expression.line, "shape",
                fmt::format("{} needs {} `:`", describe_dims(result.dims), result.dims.size()));
  result.operation = "[]";
  result.line = expression.line;
  result.operands = {base.value};
  result.dims = std::move(dims);
  return add(std::move(result));
}

Object Tracer::evaluate_conditional(const Expression& expression) {
  Object condition = evaluate(expression.operands[0]);
  if (is_constant(&condition)) return evaluate(expression.operands[constant(condition) != 0 ? 1 : 2]);
  Object a = evaluate(expression.operands[1]);
  Object b = evaluate(expression.operands[2]);
  if (!condition.is_value() || !a.is_value() || !b.is_value()) return {};
  if (at(condition).is_tile() || at(a).is_tile() || at(b).is_tile())
    return fail(expression.line, "branch", "`a if c else b` takes scalars: select elements by tl.where");
  Value result = derived("select", expression.line, {condition.value, a.value, b.value});
  result.dtype = common_dtype(at(a), at(b));
  set_scalar(result, hull(at(a).range, at(b).range));
  return add(std::move(result));
}

Object Tracer::evaluate_call(const Expression& expression) {
  Arguments arguments;
  const Expression& function = file_.expressions[expression.operands[0]];
  std::string name;
  bool is_method = false;
  if (function.kind == ExpressionKind::attribute) {
    Object base = evaluate(function.operands[0]);
    if (base.kind == Object::Kind::unknown) return {};
    is_method = base.kind != Object::Kind::name;
    name = is_method ? "tl." + function.text : base.text + "." + function.text;
    if (is_method) arguments.items.push_back(base);
  } else {
    Object named = evaluate(expression.operands[0]);
    if (named.kind == Object::Kind::unknown) return {};
    name = named.text;
  }
  size_t first_keyword = expression.operands.size() - expression.keywords.size();
  for (size_t i = 1; i < first_keyword; ++i) arguments.items.push_back(evaluate(expression.operands[i]));
  for (size_t i = 0; i < expression.keywords.size(); ++i)
    arguments.keywords.emplace_back(expression.keywords[i], evaluate(expression.operands[first_keyword + i]));
  for (const Function& helper : file_.functions)
    if (helper.name == name) return call_helper(helper, arguments, expression.line);
  return call(name, arguments, expression.line);
}

// In line, with names of its own.
Object Tracer::call_helper(const Function& function, const Arguments& arguments, int line) {
  if (calls_ == kMostNestedCalls) return fail(line, "unknown", "functions that call each other without end");
  Names names;
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const Parameter& parameter = function.parameters[i];
    const Object* given = arguments.find(i, parameter.name);
    if (!given && !parameter.default_value.valid())
      return fail(line, "undefined", fmt::format("{} needs the argument {}", function.name, parameter.name));
    names[parameter.name] = given ? *given : evaluate(parameter.default_value);
  }
  Names around = std::exchange(names_, std::move(names));
  auto lost_around = std::exchange(lost_, {});
  Object returned_around = std::exchange(returned_, Object{Object::Kind::none});
  ++calls_;
  execute(function.body);
  --calls_;
  names_ = std::move(around);
  lost_ = std::move(lost_around);
  return std::exchange(returned_, std::move(returned_around));
}

}  // namespace kerf::triton
