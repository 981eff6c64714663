#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "ops/eval.h"
#include "ops/scalar_op.h"

namespace kerf::ops {

namespace {

constexpr OpInfo kTable[] = {
#define OP(name, ...) OpInfo{__VA_ARGS__},
#include "ops/scalar_ops.def"
#undef OP
};

// What the typing rule says about the number of operands; 0 where it leaves it to the row.
constexpr int implied_arity(Typing types) {
  switch (types) {
    case Typing::same_float:
    case Typing::same_number:
    case Typing::same_integer:
    case Typing::same_any: return 0;
    case Typing::predicate:
    case Typing::conversion: return 1;
    case Typing::comparison:
    case Typing::index_check:
    case Typing::random: return 2;
    case Typing::select: return 3;
  }
  return -1;
}

// That every row has an evaluator is a unit test: sanitizer builds cannot compare function addresses here.
constexpr bool rows_are_complete() {
  return std::ranges::all_of(kTable, [](const OpInfo& row) {
    int implied = implied_arity(row.types);
    return !row.text.empty() && row.cost > 0 && row.ulp >= 0.5 && row.domain.lo < row.domain.hi &&
           row.arity >= 1 && row.arity <= 3 && (implied == 0 || implied == row.arity);
  });
}

constexpr bool texts_are_unique() {
  for (const OpInfo& row : kTable)
    if (std::ranges::count(kTable, row.text, &OpInfo::text) != 1) return false;
  return true;
}

static_assert(rows_are_complete(),
              "a row of scalar_ops.def lacks a field or has the wrong arity for its typing rule");
static_assert(texts_are_unique(), "two rows of scalar_ops.def have the same text");

bool is_computed_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

std::optional<DType> if_allowed(bool allowed, DType result) {
  return allowed ? std::optional(result) : std::nullopt;
}

}  // namespace

const OpInfo& info(ScalarOp op) { return kTable[static_cast<int>(op)]; }

std::optional<ScalarOp> scalar_op_from_text(std::string_view text) {
  for (size_t i = 0; i < std::size(kTable); ++i)
    if (kTable[i].text == text) return static_cast<ScalarOp>(i);
  return std::nullopt;
}

std::optional<DType> result_dtype(ScalarOp op, std::span<const DType> operands) {
  const OpInfo& row = info(op);
  if (operands.size() != static_cast<size_t>(row.arity)) return std::nullopt;
  DType first = operands[0];
  bool alike = std::ranges::all_of(operands, [first](DType dtype) { return dtype == first; });
  switch (row.types) {
    case Typing::same_float: return if_allowed(alike && is_computed_float(first), first);
    case Typing::same_number:
      return if_allowed(alike && (is_computed_float(first) || is_integer(first)), first);
    case Typing::same_integer: return if_allowed(alike && !is_floating(first), first);
    case Typing::same_any: return if_allowed(alike && !is_half(first), first);
    case Typing::comparison: return if_allowed(alike && !is_half(first), DType::b1);
    case Typing::predicate: return if_allowed(is_computed_float(first), DType::b1);
    case Typing::select: return if_allowed(first == DType::b1 && operands[1] == operands[2], operands[1]);
    case Typing::conversion: return std::nullopt;
    case Typing::index_check: return if_allowed(alike && first == DType::i64, DType::i64);
    case Typing::random: return if_allowed(alike && first == DType::i64, DType::f32);
  }
  UNREACHABLE("typing rule of {}", row.text);
}

Scalar evaluate(ScalarOp op, DType result, std::span<const Scalar> operands) {
  const OpInfo& row = info(op);
  CHECK(operands.size() == static_cast<size_t>(row.arity), "{} over {} operands", row.text, operands.size());
  return row.eval(result, operands);
}

bool fails(ScalarOp op, DType result, std::span<const Scalar> operands) {
  const OpInfo& row = info(op);
  if (!(row.flags & kMayFail)) return false;
  int64_t second = operands[1].i;
  if (row.types != Typing::index_check) return !is_floating(result) && second == 0;
  if (second <= 0) return true;
  int64_t lowest = op == ScalarOp::wrap_index ? -second : 0;
  return operands[0].i < lowest || operands[0].i >= second;
}

}  // namespace kerf::ops
