// Statements: what a name stands for before and after loops and branches.
#include "codegen/triton/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/triton/tracer.h"

namespace kerf::triton {

namespace {

constexpr std::string_view kPointerSuffix = "_ptr";

bool mentions(const Expressions& expressions, ExpressionId id, std::string_view name) {
  if (!id.valid()) return false;
  const Expression& expression = expressions[id];
  if (expression.kind == ExpressionKind::name) return expression.text == name;
  return std::ranges::any_of(expression.operands,
                             [&](auto part) { return mentions(expressions, part, name); });
}

enum class FirstUse : uint8_t { none, read, write };

// What the statements do first with a name. A branch may read; that it writes does not count.
FirstUse first_use(const Expressions& expressions, const std::vector<Statement>& statements,
                   std::string_view name) {
  for (const Statement& statement : statements) {
    if (mentions(expressions, statement.value, name)) return FirstUse::read;
    bool is_written = std::ranges::find(statement.names, name) != statement.names.end();
    if (is_written) return statement.operation.empty() ? FirstUse::write : FirstUse::read;
    for (const auto* block : {&statement.body, &statement.otherwise})
      if (first_use(expressions, *block, name) == FirstUse::read) return FirstUse::read;
  }
  return FirstUse::none;
}

void collect_written(const std::vector<Statement>& statements, std::set<std::string>& names) {
  for (const Statement& statement : statements) {
    names.insert(statement.names.begin(), statement.names.end());
    collect_written(statement.body, names);
    collect_written(statement.otherwise, names);
  }
}

std::set<std::string> written_by(const Statement& loop) {
  std::set<std::string> names(loop.names.begin(), loop.names.end());
  collect_written(loop.body, names);
  return names;
}

bool have_one_type(const Value& a, const Value& b) {
  return a.dtype == b.dtype && a.is_pointer == b.is_pointer &&
         std::ranges::equal(a.dims, b.dims, {}, &Dim::extent, &Dim::extent);
}

std::string describe_type(const Value& value) {
  return fmt::format("{}{} {}", value.is_pointer ? "pointer to " : "", to_text(value.dtype),
                     describe_dims(value.dims));
}

}  // namespace

std::string describe_dims(const std::vector<Dim>& dims) {
  std::string text;
  for (const Dim& dim : dims) text += fmt::format("{}{}", text.empty() ? "[" : ", ", dim.extent);
  return dims.empty() ? "scalar" : text + "]";
}

Tracer::Tracer(const KernelFile& file, const NamedIntegers& blocks) : file_(file) {
  trace_.buffers = file.buffers;
  for (const Parameter& parameter : file.function().parameters) bind_parameter(parameter, blocks);
}

// Where a program does one tile, as many as there are tiles; of dynamic extents any number.
int64_t Tracer::most_programs() const {
  constexpr int64_t kLaunch = 65535;
  if (file_.cores > 0) return kLaunch;
  auto value_of = [&](const std::string& word) -> std::optional<int64_t> {
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0]))) return std::stoll(word);
    auto found = names_.find(word);
    return found != names_.end() && is_constant(&found->second) ? std::optional(constant(found->second))
                                                                : std::nullopt;
  };
  int64_t tiles = 1;
  for (const auto& [extent, block] : file_.grid) {
    auto n = value_of(extent), b = value_of(block);
    if (!n || !b || *b <= 0) return Range::kUnbounded;
    tiles *= std::max<int64_t>((*n + *b - 1) / *b, 1);
  }
  return tiles;
}

Trace Tracer::run() {
  execute(file_.function().body);
  return std::move(trace_);
}

void Tracer::bind_parameter(const Parameter& parameter, const NamedIntegers& blocks) {
  int line = file_.function().line;
  auto bound = std::ranges::find(blocks, parameter.name, &NamedIntegers::value_type::first);
  std::string annotation = parameter.annotation.valid() ? file_.expressions[parameter.annotation].text : "";
  if (bound != blocks.end()) {
    names_[parameter.name] = integer(bound->second, line);
  } else if (annotation == "constexpr") {
    names_[parameter.name] =
        parameter.default_value.valid()
            ? evaluate(parameter.default_value)
            : fail(line, "signature", fmt::format("the constexpr {} needs a default", parameter.name));
  } else if (parameter.name.ends_with(kPointerSuffix)) {
    std::string name = parameter.name.substr(0, parameter.name.size() - kPointerSuffix.size());
    auto buffer = std::ranges::find(trace_.buffers, name, &FileBuffer::name);
    if (buffer == trace_.buffers.end()) {
      names_[parameter.name] = fail(line, "signature", fmt::format("KERNEL has no buffer '{}'", name));
      return;
    }
    Value pointer = derived("argument", line, {});
    pointer.is_pointer = true;
    pointer.dtype = buffer->dtype;
    pointer.buffer = static_cast<uint32_t>(buffer - trace_.buffers.begin());
    pointer.range = {0, 0};
    names_[parameter.name] = add(std::move(pointer));
  } else {
    Value scalar = derived("argument", line, {});
    if (std::optional<DType> dtype = dtype_from_torch(annotation)) scalar.dtype = *dtype;
    set_scalar(scalar, {0, Range::kUnbounded});
    names_[parameter.name] = add(std::move(scalar));
  }
}

void Tracer::execute(const std::vector<Statement>& statements) {
  for (const Statement& statement : statements) {
    switch (statement.kind) {
      case StatementKind::assign: assign(statement); break;
      case StatementKind::loop: loop(statement); break;
      case StatementKind::branch: branch(statement); break;
      case StatementKind::evaluate: evaluate(statement.value); break;
      case StatementKind::give:
        returned_ = statement.value.valid() ? evaluate(statement.value) : Object{Object::Kind::none};
        return;
      case StatementKind::pass: break;
    }
  }
}

void Tracer::assign(const Statement& statement) {
  Object value = evaluate(statement.value);
  if (!statement.operation.empty()) {
    auto found = names_.find(statement.names[0]);
    Object before = found != names_.end() ? found->second
                                          : fail(statement.line, "undefined",
                                                 fmt::format("{} has no value yet", statement.names[0]));
    value = binary(statement.operation, before, value, statement.line);
  }
  if (statement.names.size() > 1 && value.kind == Object::Kind::tuple &&
      value.items.size() != statement.names.size())
    value = fail(statement.line, "shape",
                 fmt::format("{} names for {} values", statement.names.size(), value.items.size()));
  for (size_t i = 0; i < statement.names.size(); ++i) {
    bool is_one_of = statement.names.size() > 1 && value.kind == Object::Kind::tuple;
    const Object& one = is_one_of ? value.items[i] : value;
    name_axes(statement.names[i], one);
    names_[statement.names[i]] = one;
    lost_.erase(statement.names[i]);
  }
}

void Tracer::name_axes(const std::string& name, const Object& object) {
  if (!object.is_value()) return;
  const IndexForm& form = at(object).form;
  auto is_axis = [&](const Term& term) { return trace_.symbols[term.symbol].axis.valid(); };
  auto axes = std::ranges::count_if(form.terms, is_axis);
  for (const Term& term : form.terms) {
    if (!is_axis(term)) continue;
    TileAxis& axis = trace_.axes[trace_.symbols[term.symbol].axis];
    if (axis.name.empty() && axes == 1) {
      axis.name = name;
      axis.start = form;
      std::erase_if(axis.start.terms, is_axis);
    }
    if (axes == 1 && form.terms.size() > 1) axis.is_walked = true;
  }
}

// --- loops

// Calls range, tl.range or tl.static_range.
Loop Tracer::loop_of(const Statement& statement) {
  Loop result{.line = statement.line, .parent = loop_};
  const Expression& call = file_.expressions[statement.value];
  bool is_call = call.kind == ExpressionKind::call;
  std::string name = is_call ? file_.expressions[call.operands[0]].text : "";
  if (name != "range" && name != "static_range") {
    fail(statement.line, "loop", "a loop goes over range(...)");
    return result;
  }
  result.is_static = name == "static_range";
  std::vector<ValueId> values;
  for (size_t i = 1; i < call.operands.size() - call.keywords.size(); ++i) {
    Object object = evaluate(call.operands[i]);
    if (!object.is_value()) return result;
    if (at(object).is_tile()) fail(statement.line, "loop", "range(...) takes scalars");
    values.push_back(object.value);
  }
  if (values.empty() || values.size() > 3) {
    fail(statement.line, "loop", "range(...) takes one to three numbers");
    return result;
  }
  if (values.size() == 1) values.insert(values.begin(), integer(0, statement.line).value);
  if (values.size() == 2) values.push_back(integer(1, statement.line).value);
  result.start = values[0], result.stop = values[1], result.step = values[2];
  return result;
}

// The values of a loop's variable.
Range range_of(const Range& start, const Range& stop, const Range& step) {
  Range result{start.low, std::max(start.low, (stop - Range{1, 1}).high)};
  bool is_exact = start.is_point() && stop.is_point() && step.is_point() && step.low > 0;
  if (is_exact && stop.low > start.low) result.high -= (result.high - start.low) % step.low;
  return result;
}

void Tracer::loop(const Statement& statement) {
  Loop loop = loop_of(statement);
  LoopId id = trace_.loops.push_back(loop);
  LoopId around = std::exchange(loop_, id);
  Object variable;
  if (loop.start.valid()) {
    Range stop = trace_.values[loop.stop].range;
    if (stop.high <= trace_.values[loop.start].range.low)
      fail(statement.line, "loop", "this loop never runs: leave it out");
    Value value = derived("variable", statement.line, {loop.start, loop.stop, loop.step});
    set_scalar(value, range_of(trace_.values[loop.start].range, stop, trace_.values[loop.step].range));
    variable = add(std::move(value));
  }
  bool is_empty =
      std::ranges::all_of(statement.body, [](auto& inner) { return inner.kind == StatementKind::pass; });
  if (is_empty) fail(statement.line, "loop", "a loop without a body: leave it out");
  auto carried = begin_carrying(statement);
  names_[statement.names[0]] = variable;
  trace_.loops[id].variable = variable.value;
  trace_.loops[id].carries = !carried.empty();
  trace_.loops[id].begin = trace_.values.end_id();
  execute(statement.body);
  end_carrying(statement, carried);
  trace_.loops[id].end = trace_.values.end_id();
  loop_ = around;
}

// Names whose value comes from the iteration before stand for any of their values in the body.
std::vector<std::pair<std::string, ValueId>> Tracer::begin_carrying(const Statement& statement) {
  std::vector<std::pair<std::string, ValueId>> carried;
  std::set<std::string> written;
  collect_written(statement.body, written);
  for (const std::string& name : written) {
    auto found = names_.find(name);
    if (found == names_.end() || !found->second.is_value()) continue;
    if (first_use(file_.expressions, statement.body, name) != FirstUse::read) continue;
    Value value = at(found->second);
    value.operation = "carried";
    value.line = statement.line;
    value.operands = {found->second.value};
    value.is_constant = false;
    value.loop = loop_;
    if (value.is_tile()) {
      value.range = {}, value.form = not_affine();
    } else {
      set_scalar(value, {});
    }
    found->second = add(std::move(value));
    carried.emplace_back(name, found->second.value);
  }
  return carried;
}

void Tracer::end_carrying(const Statement& statement,
                          const std::vector<std::pair<std::string, ValueId>>& carried) {
  std::set<std::string> gone = written_by(statement);
  for (const auto& [name, id] : carried) {
    Object after = names_[name];
    gone.erase(name);
    if (!after.is_value()) continue;
    const Value& before = trace_.values[id];
    if (!have_one_type(before, at(after)))
      fail(statement.line, "shape",
           fmt::format("{} is {} before the loop and {} after an iteration: give it one type", name,
                       describe_type(before), describe_type(at(after))));
    trace_.values[id].operands.push_back(after.value);
    names_[name] = Object{.kind = Object::Kind::value, .value = id};
  }
  for (const std::string& name : gone) {
    names_.erase(name);
    lost_.insert(name);
  }
}

// --- branches

void Tracer::branch(const Statement& statement) {
  Object condition = evaluate(statement.value);
  if (is_constant(&condition))
    return execute(constant(condition) != 0 ? statement.body : statement.otherwise);
  if (condition.is_value() && at(condition).is_tile())
    fail(statement.line, "branch", "`if` takes a scalar: select elements by tl.where");
  if (condition.is_value()) {
    Value value = derived("if", statement.line, {condition.value});
    value.is_nothing = true;
    add(std::move(value));
  }
  ++guards_;
  Names before = names_;
  execute(statement.body);
  Names taken = std::exchange(names_, std::move(before));
  execute(statement.otherwise);
  merge(std::move(taken), names_, statement.line);
  --guards_;
}

// What both ways define is one of the two values; what only one defines is lost.
void Tracer::merge(Names taken, const Names& other, int line) {
  Names merged;
  for (const auto& [name, object] : other)
    if (!taken.contains(name)) lost_.insert(name);
  for (auto& [name, object] : taken) {
    auto found = other.find(name);
    if (found == other.end()) {
      lost_.insert(name);
      continue;
    }
    bool is_same = !object.is_value() || !found->second.is_value() || object.value == found->second.value;
    if (!is_same) {
      const Value& a = at(object);
      const Value& b = at(found->second);
      if (!have_one_type(a, b))
        fail(line, "shape",
             fmt::format("{} is {} or {} after this `if`: give it one type", name, describe_type(a),
                         describe_type(b)));
      Value value = derived("select", line, {object.value, found->second.value});
      value.dtype = a.dtype, value.dims = a.dims, value.is_pointer = a.is_pointer, value.buffer = a.buffer;
      value.form = not_affine();
      if (!value.is_tile()) set_scalar(value, hull(a.range, b.range));
      object = add(std::move(value));
    }
    merged[name] = std::move(object);
  }
  names_ = std::move(merged);
}

bool Trace::same_axis(AxisId a, AxisId b) const {
  const TileAxis &x = axes[a], &y = axes[b];
  if (a == b || (!x.name.empty() && x.name == y.name)) return true;
  auto is_ending = [](const std::string& name, const std::string& of) {
    return !of.empty() && name.starts_with(of + "_");
  };
  if (!is_ending(x.name, y.name) && !is_ending(y.name, x.name)) return false;
  IndexForm difference = triton::add(x.start, y.start, -1);
  return symbols[x.symbol].range == symbols[y.symbol].range && difference.is_affine && difference.is_exact &&
         difference.constant == 0 && difference.terms.empty();
}

Trace trace_kernel(const KernelFile& file, const NamedIntegers& blocks) { return Tracer(file, blocks).run(); }

}  // namespace kerf::triton
