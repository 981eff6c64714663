#pragma once
// The functions that kernels may call (tl_functions.def).
#include <cstdint>
#include <string_view>

namespace kerf::triton {

// What a call gives: `floating` a float of the operand's shape, `same` the operand's type, `test` booleans, `elementwise`
// the common type and shape of all operands.
enum class CallForm : uint8_t {
  program_id,
  num_programs,
  arange,
  load,
  store,
  cdiv,
  create,
  cast,
  where,
  same,
  floating,
  test,
  elementwise,
  random,
  fold,
  position,
  reduce,
  scan,
  dot,
  permute,
  reshape,
  expand_dims,
  split,
  join,
  hint,
  assertion,
  nothing,
  atomic,
};

struct TlFunction {
  std::string_view name;
  CallForm form;
  int scratch;              // fp32 tiles that an Ascend device takes beside the result
  std::string_view advice;  // what an Ascend kernel does instead
};

// By its last name ("load"); null for a function that is not in the table.
const TlFunction* find_tl_function(std::string_view name);

}  // namespace kerf::triton
