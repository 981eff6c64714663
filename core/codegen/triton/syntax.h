#pragma once
// The syntax tree of a kernel file: the subset of Python in which kernels are written. Expressions lie in one table,
// operands before those who use them; everything knows its line.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/ids.h"

namespace kerf::triton {

using ExpressionId = Id<struct ExpressionTag>;

enum class ExpressionKind : uint8_t {
  name,         // text
  integer,      // integer
  floating,     // floating
  string,       // text
  constant,     // text: True, False, None
  attribute,    // operands[0].text
  call,         // operands[0](operands[1], ..., keywords[0]=..., ...): the last operands are the keywords'
  subscript,    // operands[0][operands[1], ...]
  slice,        // `:` inside a subscript
  unary,        // text operands[0]: - + ~ not
  binary,       // operands[0] text operands[1]: + - * / // % ** & | ^ << >> and or
  comparison,   // operands[0] text operands[1]: < <= > >= == != is, is not, in, not in
  conditional,  // operands[1] if operands[0] else operands[2]
  tuple,        // operands
  list,         // operands
  dictionary,   // operands: key, value, key, value, ...
};

struct Expression {
  ExpressionKind kind = ExpressionKind::constant;
  int line = 0;
  std::string text;
  int64_t integer = 0;
  double floating = 0;
  std::vector<ExpressionId> operands;
  std::vector<std::string> keywords;
};

using Expressions = IdVector<ExpressionId, Expression>;

enum class StatementKind : uint8_t {
  assign,    // names = value; with `operation`, names[0] operation= value
  loop,      // for names[0] in value: body
  branch,    // if value: body else: otherwise
  evaluate,  // value
  give,      // return value (absent: None)
  pass,
};

struct Statement {
  StatementKind kind = StatementKind::pass;
  int line = 0;
  std::vector<std::string> names;
  std::string operation;
  ExpressionId value;
  std::vector<Statement> body;
  std::vector<Statement> otherwise;
};

struct Parameter {
  std::string name;
  ExpressionId annotation;  // tl.constexpr, or absent
  ExpressionId default_value;
};

struct Function {
  std::string name;
  int line = 0;
  std::vector<Parameter> parameters;
  std::vector<Statement> body;
};

// What KERNEL says about one buffer of the kernel.
struct FileBuffer {
  std::string name;
  DType dtype = DType::f32;
  int64_t elements = 0;
};

using NamedIntegers = std::vector<std::pair<std::string, int64_t>>;

struct KernelFile {
  Expressions expressions;
  std::vector<Function> functions;  // all that are decorated with triton.jit
  size_t kernel = 0;                // the function that KERNEL names
  // From KERNEL:
  int line = 0;
  std::string target;  // "npu:910B3", "cuda"
  std::vector<FileBuffer> buffers;
  NamedIntegers extents;
  std::vector<NamedIntegers> blocks;  // choices; the first is in the signature
  // Axes of the grid as [extent, block], names or numbers; none: one program.
  std::vector<std::pair<std::string, std::string>> grid;
  int64_t cores = 0;  // 0: a program a tile

  const Function& function() const { return functions[kernel]; }
};

}  // namespace kerf::triton
