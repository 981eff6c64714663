#pragma once
// The scalar operations: one row each in scalar_ops.def. A row is all there is to an operation: the enum, the
// text form, the typing rule, the evaluator of the interpreters, the LLVM form, the domain for tests and the
// tolerance all come from it. Nothing else in the core lists operations.
//
// Arithmetic in the loop IR is never done in f16 or bf16: only `cast`, `where`, loads, stores and constants
// take those types (computing happens in f32, rounding is an explicit cast). See Typing.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/dtype.h"

namespace kerf::ops {

enum class ScalarOp : uint8_t {
#define OP(name, ...) name,
#include "ops/scalar_ops.def"
#undef OP
};

// Operand and result types.
enum class Typing : uint8_t {
  same_float,    // f32 or f64, all operands alike, result the same
  same_number,   // f32, f64 or any integer; all alike
  same_integer,  // any integer or bool; all alike
  same_any,      // f32, f64, integer or bool; all alike
  comparison,    // operands f32, f64, integer or bool, all alike; result bool
  predicate,     // one f32 or f64; result bool
  select,        // (bool, T, T) -> T, any T including f16 and bf16
  conversion,    // one operand of any type; the result type is the value's own dtype
  index_check,   // (i64 index, i64 bound) -> i64
  random,        // (i64 seed, i64 counter) -> f32
};

enum Flags : uint16_t {
  kPure = 0,
  kCommutative = 1,
  kAssociative = 2,  // exactly; never set for floating-point sums
  kMayFail = 4,      // reports a run-time error through the kernel's error record (check_index, x // 0)
};

// How codegen/llvm emits the op.
enum class LlvmForm : uint8_t {
  instruction,  // `float_text`/`int_text` name LLVM instructions: fadd / add
  intrinsic,    // llvm.<float_text>
  vector_math,  // f32: our own polynomial `float_text` in codegen/llvm; f64: the libm function `int_text` per lane
  call,         // a libm function, f32 name then f64 name, called per lane
  custom,       // a case in codegen/llvm/scalar
  unsupported,
};

struct LlvmRow {
  LlvmForm form = LlvmForm::unsupported;
  std::string_view float_text = {};  // or the f32 symbol of a call
  std::string_view int_text = {};    // or the f64 symbol of a call
};

// How codegen/triton writes the op: {0}, {1}, {2} are its operands, names of functions that begin with `kerf_` those of
// codegen/triton/library. The Ascend dialect has a form of its own where the first one is slow or inaccurate there.
inline constexpr std::string_view kCustom = "custom";  // a case in codegen/triton/scalar
inline constexpr std::string_view kUnsupported = "unsupported";
struct TritonRow {
  std::string_view nvidia = {};
  std::string_view ascend = nvidia;
};

struct Domain {
  double lo = -10;
  double hi = 10;
};

using Evaluator = Scalar (*)(DType result, std::span<const Scalar> operands);

struct OpInfo {
  std::string_view text;
  int arity = 1;
  Typing types = Typing::same_float;
  uint16_t flags = kPure;
  Domain domain = {};  // sampled by property and numeric tests, besides special values
  double ulp = 0.5;    // largest error of any target against the exact result, f32
  Evaluator eval = nullptr;
  LlvmRow llvm = {};
  TritonRow triton = {};
  int cost = 1;  // vector instructions of an f32 lane, for the scheduler's recompute decisions
  std::string_view help = {};
};

const OpInfo& info(ScalarOp op);
inline std::string_view to_text(ScalarOp op) { return info(op).text; }
std::optional<ScalarOp> scalar_op_from_text(std::string_view text);

// The dtype of `op` over operands of these dtypes; nullopt if the row forbids them. For `conversion` the result
// is not implied and nullopt is returned.
std::optional<DType> result_dtype(ScalarOp op, std::span<const DType> operands);

// Evaluates with the meaning that every target must reproduce (within `ulp` for inexact rows).
Scalar evaluate(ScalarOp op, DType result, std::span<const Scalar> operands);

// Whether a kMayFail operation fails on these operands: an integer divisor of zero, an index outside its bound. The
// caller reports it; `evaluate` gives 0 there. False for every other row.
bool fails(ScalarOp op, DType result, std::span<const Scalar> operands);

}  // namespace kerf::ops
