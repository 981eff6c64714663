#pragma once
// Calls to library operators, and how graph results are given back: plain data shared by graph, loop and runtime.
// Sizes and strides are sym expressions over the program's size symbols, in elements.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "sym/expr.h"

namespace kerf::target {

using BufferIndex = uint32_t;
inline constexpr BufferIndex kNoBuffer = 0xffffffffu;

// A strided window into a buffer.
struct TensorView {
  BufferIndex buffer = kNoBuffer;
  DType dtype = DType::f32;
  std::vector<sym::Expr> shape;
  std::vector<sym::Expr> strides;
  sym::Expr offset;
};

// Torch enums travel by name: "float32" (dtype), "strided" (layout), "contiguous_format", "cpu" (device).
struct TorchConstant {
  enum class Kind : uint8_t { dtype, layout, memory_format, device } kind;
  std::string name;
};

struct ExternArgument;
using ExternArgumentList = std::vector<ExternArgument>;

// monostate is None. sym::Expr is an int or SymInt.
struct ExternArgument {
  std::variant<std::monostate, bool, sym::Expr, double, std::string, TorchConstant, TensorView,
               ExternArgumentList>
      value;
  std::string keyword;  // empty for a positional argument
};

// One tensor result of an extern call. dtype, shape and strides are what tracing promised; they are checked against
// what the call returns before any kernel reads it.
struct ExternResult {
  BufferIndex buffer = kNoBuffer;  // kNoBuffer: not used
  DType dtype = DType::f32;
  std::vector<sym::Expr> shape;
  std::vector<sym::Expr> strides;
  bool is_opaque = false;  // a dtype that Kerf does not compute with: `dtype` is unused and not checked
};

struct ExternCall {
  std::string op;  // "aten.mm.default"
  ExternArgumentList arguments;
  std::vector<ExternResult> results;
  std::string reason;           // why it is not a kernel: "matmul: library call", "no lowering for aten.sort"
  std::string source;           // the user's source line
  bool is_matmul_like = false;  // matmul, convolution, attention: outside the compiled-share measure
};

// Where a size symbol's value comes from: dimension `dim` of input `input`, or the integer input itself (dim -1).
struct SizeSource {
  sym::Expr symbol;
  int input = 0;
  int dim = 0;
};

// What the compiled graph returns, in order: a tensor, an integer expression, or None.
struct ProgramOutput {
  enum class Kind : uint8_t { tensor, integer, none } kind = Kind::none;
  TensorView view;       // tensor
  sym::Expr integer;     // integer
  int alias_input = -1;  // tensor: as_strided on that input object (the result shares its storage)
};

}  // namespace kerf::target
