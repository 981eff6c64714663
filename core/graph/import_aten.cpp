#include "graph/import_aten.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numbers>
#include <unordered_map>
#include <unordered_set>

#include "graph/import_call.h"

namespace kerf::graph {

namespace {

using S = ops::ScalarOp;
using R = ops::ReduceOp;

const AtenRow kRows[] = {
#define ATEN(overload, importer, ...) {overload, importer, {__VA_ARGS__}},
#include "graph/aten.def"
#undef ATEN
};

constexpr std::string_view kAten = "aten.";

// Of rows with the full name of an operator that is not torch's usual.
bool names_namespace(std::string_view overload) {
  return overload.starts_with("kerf.") || overload.starts_with("prims.");
}

const AtenRow* find_row(std::string_view op) {
  static const std::unordered_map<std::string_view, const AtenRow*> kByOverload = [] {
    std::unordered_map<std::string_view, const AtenRow*> map;
    for (const AtenRow& row : kRows) map.emplace(row.overload, &row);
    return map;
  }();
  auto found = kByOverload.find(op.starts_with(kAten) ? op.substr(kAten.size()) : op);
  return found == kByOverload.end() ? nullptr : found->second;
}

// The family that a whole node counts to before it is expanded.
Family family_of_composite(Op op) {
  switch (op) {
    case Op::gelu:
    case Op::gelu_backward: return Family::pointwise;
    case Op::embedding_backward: return Family::scatter;
    case Op::native_dropout: return Family::random;
    default: return Family::composite;
  }
}

// Of every row, in the order of kRows.
std::vector<OverloadFacts> section_facts() {
  std::vector<OverloadFacts> facts;
  OverloadFacts section{};
  auto add = [&](const RowFields& row) {
    OverloadFacts of_row = section;
    if (section.family == Family::composite) of_row.family = family_of_composite(row.op);
    if (section.cost == 0) of_row.cost = ops::info(row.scalar).cost;
    facts.push_back(of_row);
  };
#define ATEN_SECTION(name, cost) section = {Family::name, cost};
#define ATEN(overload, importer, ...) add({__VA_ARGS__});
#include "graph/aten.def"
#undef ATEN
  return facts;
}

target::ExternArgument extern_argument(const Argument& argument, std::vector<ValueId>& operands) {
  target::ExternArgument out;
  if (const auto* tensor = std::get_if<ValueId>(&argument.value)) {
    operands.push_back(*tensor);
    out.value = target::TensorView{.buffer = static_cast<uint32_t>(operands.size() - 1)};
  } else if (const auto* list = std::get_if<ArgumentList>(&argument.value)) {
    target::ExternArgumentList items;
    for (const Argument& item : *list) items.push_back(extern_argument(item, operands));
    out.value = std::move(items);
  } else {
    std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (!std::is_same_v<T, ValueId> && !std::is_same_v<T, ArgumentList>) out.value = value;
        },
        argument.value);
  }
  return out;
}

std::vector<ValueId> import_external(Builder& builder, const Call& call, const std::string& reason) {
  std::vector<ValueId> operands;
  target::ExternArgumentList arguments;
  size_t positional = call.arguments.size() - call.keyword_only.size();
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    arguments.push_back(extern_argument(call.arguments[i], operands));
    if (i >= positional) arguments.back().keyword = call.keyword_only[i - positional];
  }
  return builder.external(call.op, std::move(operands), std::move(arguments), reason, call.results);
}

bool is_opaque(const Builder& builder, const Argument& argument) {
  if (const auto* tensor = std::get_if<ValueId>(&argument.value))
    return !builder.type(*tensor).opaque.empty();
  if (const auto* list = std::get_if<ArgumentList>(&argument.value))
    return std::ranges::any_of(*list, [&](const Argument& item) { return is_opaque(builder, item); });
  return false;
}

// Why a call is beyond all importers; empty if it is not.
std::string obstacle(const Builder& builder, const Call& call, const AtenRow* row) {
  if (!call.obstacle.empty()) return call.obstacle;
  if (!row) return fmt::format("no lowering for {}", call.op);
  for (const TensorType& type : call.results)
    if (!type.opaque.empty()) return fmt::format("{} gives {}", call.op, type.opaque);
  for (const Argument& argument : call.arguments)
    if (is_opaque(builder, argument))
      return fmt::format("{} takes a dtype that Kerf does not compute with", call.op);
  if (row->fields.refused && row->fields.refused & bit_of(call.results[0].dtype))
    return fmt::format("{}: torch has no kernel for {}", call.op, to_text(call.results[0].dtype));
  for (size_t i = 0; i < call.arguments.size(); ++i)
    if (row->fields.converted >> i & 1 && !fits(call.arguments[i], call.results[0].dtype))
      return fmt::format("{}: a number that {} cannot hold, which torch refuses", call.op,
                         to_text(call.results[0].dtype));
  return {};
}

// Whether operands have both sizes in the dimension so many from the end, where they were broadcast: torch has
// then checked that the sizes are equal, also where nothing proves it (a sum of sizes that data decide).
bool torch_equates(Builder& builder, const Call& call, sym::Expr a, sym::Expr b, size_t from_end) {
  if (different_size(builder.graph(), a, b)) return false;
  bool has_a = false, has_b = false;
  for (const Argument& argument : call.arguments) {
    const auto* operand = std::get_if<ValueId>(&argument.value);
    if (!operand || builder.type(*operand).rank() < from_end) continue;
    sym::Expr size = builder.type(*operand).shape.end()[-static_cast<ptrdiff_t>(from_end)];
    has_a |= same_size(builder.graph(), size, a);
    has_b |= same_size(builder.graph(), size, b);
  }
  return has_a && has_b;
}

bool has_shape(Builder& builder, const Call& call, const TensorType& type, const TensorType& promised) {
  if (type.rank() != promised.rank()) return false;
  for (size_t i = 0; i < type.rank(); ++i)
    if (!same_size(builder.graph(), type.shape[i], promised.shape[i]) &&
        !torch_equates(builder, call, type.shape[i], promised.shape[i], type.rank() - i))
      return false;
  return true;
}

// What an importer made has the type that tracing promised, and a value that leaves the graph has eager's
// strides. An operand handed through is a view when its strides are others.
Result<ValueId> settle(Builder& builder, const Call& call, const TensorType& promised, ValueId value,
                       ValueId first_new) {
  const TensorType& type = builder.type(value);
  if (type.dtype != promised.dtype || !has_shape(builder, call, type, promised))
    return Unsupported{fmt::format("the importer made {}{} of a promised {}{}", to_text(type.dtype),
                                   to_text(type.shape), to_text(promised.dtype), to_text(promised.shape))};
  if (type.strides == promised.strides && type.shape == promised.shape) return value;
  if (value < first_new || type.shape != promised.shape)
    value = builder.node(Op::reshape, {value}, {{Attr::shape, promised.shape}}, {promised})[0];
  builder.graph().values[value].type.strides = promised.strides;
  return value;
}

// Calls whose results eager may place in the memory of their operand.
bool is_view(const AtenRow& row) {
  static const std::unordered_set<Importer> kViews = {
      import_reshape,  import_same,       import_expand,  import_permute, import_transpose,
      import_t,        import_slice,      import_narrow,  import_select,  import_split,
      import_diagonal, import_as_strided, import_bitcast, import_unfold};
  return kViews.contains(row.importer);
}

// The value whose memory a value is in, seen through views.
ValueId memory_of(const Graph& graph, ValueId value) {
  while (info(graph.nodes[graph.values[value].producer].op).family == Family::view)
    value = graph.nodes[graph.values[value].producer].operands[0];
  return value;
}

// A copy with the value's strides.
ValueId own_memory(Builder& builder, ValueId value) {
  TensorType type = builder.type(value);
  ValueId copied = builder.copy(value, type.dtype);
  builder.graph().values[copied].type.strides = type.strides;
  return copied;
}

// Side outputs that have other types than tracing says (norms) are checked by their importers.
bool has_own_types(Op op) {
  constexpr std::array kNorms = {Op::layer_norm,          Op::layer_norm_backward, Op::batch_norm,
                                 Op::batch_norm_backward, Op::group_norm,          Op::group_norm_backward};
  return std::ranges::find(kNorms, op) != kNorms.end();
}

Imported run_importer(Builder& builder, const Call& call, const AtenRow& row) {
  try {
    return row.importer({builder, call, row.fields});
  } catch (const SymbolicNumber&) {
    return decline("a symbolic number");
  }
}

Imported import_by(Builder& builder, const Call& call, const AtenRow& row) {
  ValueId first_new = builder.graph().values.end_id();
  Imported values = run_importer(builder, call, row);
  if (!values || has_own_types(row.fields.op)) return values;
  CHECK(values->size() == call.results.size(), "{}: {} results of {}", call.op, values->size(),
        call.results.size());
  for (size_t i = 0; i < values->size(); ++i) {
    Result<ValueId> settled = settle(builder, call, call.results[i], (*values)[i], first_new);
    if (!settled) return Unsupported{settled.reason()};
    // A sum over no dimension is its operand, a flip reads it: all but views promise memory of their own.
    bool shares = memory_of(builder.graph(), *settled) < first_new;
    (*values)[i] = shares && !is_view(row) ? own_memory(builder, *settled) : *settled;
  }
  return values;
}

}  // namespace

std::vector<ValueId> import_call(Builder& builder, const Call& call) {
  builder.set_source(call.source.empty() ? SourceId() : builder.add_source(call.source));
  const AtenRow* row = find_row(call.op);
  std::string reason = obstacle(builder, call, row);
  if (reason.empty()) {
    try {
      Imported values = import_by(builder, call, *row);
      if (values) return *values;
      reason = fmt::format("{}: {}", call.op, values.reason());
    } catch (const UserError&) {
      throw;
    } catch (const std::exception& e) {
      // The graph's text then ends with the call, and the pass import_externals replays the failure.
      import_external(builder, call, "its import failed");
      throw InternalError(fmt::format("importing {}: {}", call.op, e.what()));
    }
  }
  return import_external(builder, call, reason);
}

std::optional<OverloadFacts> facts_of_overload(std::string_view op) {
  static const std::vector<OverloadFacts> kFacts = section_facts();
  const AtenRow* row = find_row(op);
  if (!row) return std::nullopt;
  return kFacts[static_cast<size_t>(row - kRows)];
}

std::vector<std::string> imported_overloads() {
  std::vector<std::string> names;
  for (const AtenRow& row : kRows)
    names.push_back(fmt::format("{}{}", names_namespace(row.overload) ? "" : kAten, row.overload));
  return names;
}

}  // namespace kerf::graph
