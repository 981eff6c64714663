// Ascend kernels: how programs share the tiles, and what can be computed.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "codegen/triton/rules.h"
#include "codegen/triton/tl_functions.h"

namespace kerf::triton {

namespace {

constexpr const char* kWide = "tiles are computed element by element in int64: cast to int32 before";

bool moves_only(std::string_view operation) {
  static const std::set<std::string_view> kMoves = {"load",         "store",   "to",    "[]",
                                                    "permute",      "reshape", "full",  "zeros",
                                                    "broadcast_to", "carried", "select"};
  return kMoves.contains(operation);
}

class ValueRules {
 public:
  ValueRules(const Trace& trace, const target::NpuTarget& target, Violations& violations)
      : trace_(trace), target_(target), violations_(violations) {}

  void run() {
    for (const Value& value : trace_.values) {
      check_dtype(value);
      if (value.is_tile()) check_tile(value);
      check_function(value);
      if (value.operation == "where") check_condition(trace_.values[value.operands[0]]);
    }
    for (const Loop& loop : trace_.loops)
      if (loop.is_static)
        violations_.push_back(
            {loop.line, "loop", "tl.static_range keeps the tiles of all rounds: write range"});
  }

 private:
  void add(const Value& at, std::string_view rule, std::string message) {
    violations_.push_back({at.line, std::string(rule), std::move(message)});
  }

  void check_dtype(const Value& value) {
    if (value.dtype == DType::f64 && !value.is_pointer)
      add(value, "dtype", "there is no fp64: compute in fp32 or leave it to the library");
    if (!value.is_tile() && value.operation == "argument" && !value.is_pointer && value.dtype != DType::i32 &&
        value.dtype != DType::f32)
      add(value, "argument",
          fmt::format("a {} argument arrives wrong: pass fp32 or int32", to_text(value.dtype)));
    if (!value.is_tile()) {
      // A fold, whose result is a scalar.
      for (ValueId operand : value.operands)
        if (const Value& folded = trace_.values[operand];
            folded.is_tile() && is_wide_number(folded) && !moves_only(value.operation))
          add(value, "dtype", kWide);
      return;
    }
    bool is_unsigned = value.dtype == DType::u8 || value.operation.starts_with("to uint");
    if (is_unsigned)
      add(value, "dtype", "there are no unsigned tiles: cast to a signed type or leave it to the library");
    // Comparisons are of their operands' type, scalars of int64 too.
    bool is_wide = value.dtype == DType::i64;
    for (ValueId operand : value.operands)
      is_wide |= value.dtype == DType::b1 && is_wide_number(trace_.values[operand]);
    is_wide &= !value.is_pointer && !moves_only(value.operation);
    if (is_wide) add(value, "dtype", kWide);
  }

  static bool is_wide_number(const Value& value) {
    return value.dtype == DType::i64 && !value.is_pointer && !value.is_constant;
  }

  void check_tile(const Value& value) {
    int64_t elements = 1;
    for (const Dim& dim : value.dims) elements *= dim.extent;
    auto rank = static_cast<int>(value.dims.size());
    if (rank > target_.most_rank)
      add(value, "tile",
          fmt::format("{} dimensions, at most {}: walk over one of them", rank, target_.most_rank));
    if (elements > target_.most_elements)
      add(value, "tile",
          fmt::format("{} elements, at most {}: take smaller blocks", elements, target_.most_elements));
    bool divides = value.operation == "//" || value.operation == "%" || value.operation == "cdiv";
    if (divides && is_floating(value.dtype))
      add(value, "numerics",
          fmt::format("`{}` of floats is not exact there: leave it to the library", value.operation));
    else if (divides)
      add(value, "division",
          fmt::format("`{}` of a tile goes through fp32 (wrong from 2^24) and element by element: cut the "
                      "axis, divide "
                      "scalars",
                      value.operation));
  }

  void check_function(const Value& value) {
    const TlFunction* function = find_tl_function(value.operation);
    if (!function) return;
    if (!function->advice.empty())
      add(value, "numerics", fmt::format("{}: {}", function->name, function->advice));
    if (function->form == CallForm::atomic) add(value, "atomic", "no atomics: fold in two kernels");
    if (function->form == CallForm::reduce && value.operands.size() > 2)
      add(value, "fold", "a fold of three values at once is refused: fold twice (mean, then squares)");
    bool is_fold = function->form == CallForm::fold || function->form == CallForm::position ||
                   function->form == CallForm::reduce;
    if (!is_fold || value.folded < 0) return;
    const std::vector<Dim>& dims = trace_.values[value.operands[0]].dims;
    if (function->name == "sum" && value.folded == 0 && dims.size() > 2)
      add(value, "fold",
          "the sum over the first of three dimensions is wrong there: fold a later one, or two dimensions");
    const Dim& dim = dims[static_cast<size_t>(value.folded)];
    bool is_whole_row = dim.axis.valid() && !trace_.axes[dim.axis].is_walked;
    if (is_whole_row && dim.extent > target_.row_limit)
      add(value, "row",
          fmt::format("a row of {} elements in one tile, at most {}: walk over it", dim.extent,
                      target_.row_limit));
  }

  // Integers are compared element by element but for == and !=; below 2^24 floats say the same.
  void check_condition(const Value& condition) {
    constexpr int64_t kExact = int64_t{1} << 24;
    if (condition.operation == "&" || condition.operation == "|" || condition.operation == "~" ||
        condition.operation == "[]") {
      for (ValueId part : condition.operands) check_condition(trace_.values[part]);
      return;
    }
    bool is_ordered = condition.operation == "<" || condition.operation == "<=" ||
                      condition.operation == ">" || condition.operation == ">=";
    if (!is_ordered || !condition.is_tile()) return;
    for (ValueId operand : condition.operands) {
      const Value& side = trace_.values[operand];
      if (is_floating(side.dtype) || side.range.low < -kExact || side.range.high > kExact) return;
    }
    add(condition, "numerics",
        "integers compared for tl.where: compare as float32, which is exact below 2^24");
  }

  const Trace& trace_;
  const target::NpuTarget& target_;
  Violations& violations_;
};

bool is_operation(const Trace& trace, ValueId id, std::string_view operation) {
  return id.valid() && trace.values[id].operation == operation && trace.values[id].folded <= 0;
}

bool is_grid_loop(const Trace& trace, const Loop& loop) {
  return !loop.parent.valid() && is_operation(trace, loop.start, "program_id") &&
         is_operation(trace, loop.step, "num_programs");
}

}  // namespace

void check_npu_grid(const Trace& trace, const KernelFile& file, Violations& violations) {
  constexpr std::string_view kLoop = "`for tile in range(tl.program_id(0), tiles, tl.num_programs(0))`";
  std::set<ValueId> variables;
  for (const Loop& loop : trace.loops)
    if (is_grid_loop(trace, loop)) variables.insert(loop.variable);
  if (variables.empty()) {
    bool is_one_program = file.grid.empty() && std::ranges::none_of(trace.values, [](const Value& value) {
                            return value.operation == "program_id" || value.operation == "num_programs";
                          });
    if (!is_one_program)
      violations.push_back(
          {file.function().line, "grid", fmt::format("tiles are shared by a loop {}", kLoop)});
    return;
  }
  for (size_t i = 0; i < trace.values.size(); ++i) {
    const Value& value = trace.values[ValueId(i)];
    if (variables.contains(ValueId(i))) continue;
    for (ValueId operand : value.operands)
      if (is_operation(trace, operand, "program_id") || is_operation(trace, operand, "num_programs"))
        violations.push_back({value.line, "grid", fmt::format("program ids count tiles in {} only", kLoop)});
  }
  for (const Access& access : trace.accesses) {
    LoopId outermost = trace.values[access.at].loop;
    while (outermost.valid() && trace.loops[outermost].parent.valid())
      outermost = trace.loops[outermost].parent;
    bool is_inside = outermost.valid() && is_grid_loop(trace, trace.loops[outermost]);
    if (access.is_store && !is_inside)
      violations.push_back(
          {trace.values[access.at].line, "grid", fmt::format("a store outside of the loop {}", kLoop)});
  }
}

void check_npu_values(const Trace& trace, const target::NpuTarget& target, Violations& violations) {
  ValueRules(trace, target, violations).run();
}

}  // namespace kerf::triton
