#include "sym/eval.h"

#include <algorithm>

#include "sym/integers.h"
#include "sym/node_map.h"

namespace kerf::sym {

int64_t floor_div_int(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

int64_t mod_int(int64_t a, int64_t b) {
  if (b == -1) return 0;  // the machine traps on minimum % -1
  int64_t remainder = a % b;
  return (remainder != 0 && (remainder < 0) != (b < 0)) ? remainder + b : remainder;
}

namespace {

std::optional<int64_t> apply(Kind kind, int64_t a, int64_t b) {
  switch (kind) {
    case Kind::constant:
    case Kind::symbol: break;
    case Kind::mul: return checked_mul(a, b);
    case Kind::add: return checked_add(a, b);
    case Kind::floor_div:
      if (b == 0 || (a == kMinInt && b == -1)) return std::nullopt;
      return floor_div_int(a, b);
    case Kind::mod:
      if (b == 0) return std::nullopt;
      return mod_int(a, b);
    case Kind::min: return std::min(a, b);
    case Kind::max: return std::max(a, b);
  }
  UNREACHABLE("a leaf is not applied");
}

class Evaluator {
 public:
  explicit Evaluator(const std::function<int64_t(const Symbol&)>& value_of) : value_of_(value_of) {}

  std::optional<int64_t> evaluate(Expr expr) {
    if (expr.is_constant()) return expr.constant();
    if (const std::optional<int64_t>* known = values_.find(expr)) return *known;
    std::optional<int64_t> value = expr.is_symbol() ? value_of_(expr.symbol()) : fold(expr);
    values_.set(expr, value);
    return value;
  }

 private:
  std::optional<int64_t> fold(Expr expr) {
    std::optional<int64_t> value = evaluate(expr.operand(0));
    for (size_t i = 1; i < expr.size() && value; ++i) {
      std::optional<int64_t> next = evaluate(expr.operand(i));
      value = next ? apply(expr.kind(), *value, *next) : std::nullopt;
    }
    return value;
  }

  const std::function<int64_t(const Symbol&)>& value_of_;
  NodeMap<std::optional<int64_t>> values_;
};

}  // namespace

std::optional<int64_t> evaluate(Expr expr, const std::function<int64_t(const Symbol&)>& value_of) {
  return Evaluator(value_of).evaluate(expr);
}

// Gives each distinct subexpression a register, in the order of a depth-first walk.
class EvalProgram::Builder {
 public:
  explicit Builder(EvalProgram& program) : program_(program) {}

  void bind_input(Expr symbol) {
    CHECK(symbol.is_symbol(), "an input of an EvalProgram is a symbol");
    CHECK(!registers_.find(symbol), "symbol '{}' is an input twice", symbol.symbol().name);
    registers_.set(symbol, new_register());
  }

  uint32_t register_of(Expr expr) {
    if (const uint32_t* known = registers_.find(expr)) return *known;
    CHECK(!expr.is_symbol(), "symbol '{}' is not an input of the EvalProgram", expr.symbol().name);
    uint32_t at = 0;
    if (expr.is_constant()) {
      at = new_register();
      program_.constants_.emplace_back(at, expr.constant());
    } else {
      at = register_of(expr.operand(0));
      for (size_t i = 1; i < expr.size(); ++i) {
        uint32_t right = register_of(expr.operand(i));
        uint32_t destination = new_register();
        program_.instructions_.push_back({expr.kind(), destination, at, right});
        at = destination;
      }
    }
    registers_.set(expr, at);
    return at;
  }

 private:
  uint32_t new_register() { return static_cast<uint32_t>(program_.register_count_++); }

  EvalProgram& program_;
  NodeMap<uint32_t> registers_;
};

EvalProgram::EvalProgram(std::span<const Expr> inputs, std::span<const Expr> outputs)
    : input_count_(inputs.size()) {
  Builder builder(*this);
  for (Expr input : inputs) builder.bind_input(input);
  for (Expr output : outputs) output_registers_.push_back(builder.register_of(output));
}

void EvalProgram::run(std::span<const int64_t> inputs, std::span<int64_t> outputs,
                      std::span<int64_t> registers) const {
  CHECK(inputs.size() == input_count_, "{} inputs, expected {}", inputs.size(), input_count_);
  CHECK(outputs.size() == output_count(), "{} outputs, expected {}", outputs.size(), output_count());
  CHECK(registers.size() >= register_count_, "{} registers, expected {}", registers.size(), register_count_);
  std::copy(inputs.begin(), inputs.end(), registers.begin());
  for (auto [at, value] : constants_) registers[at] = value;
  for (const Instruction& instruction : instructions_) {
    int64_t left = registers[instruction.left], right = registers[instruction.right];
    std::optional<int64_t> value = apply(instruction.kind, left, right);
    CHECK(value, "a size expression overflows or divides by zero ({}, {})", left, right);
    registers[instruction.destination] = *value;
  }
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = registers[output_registers_[i]];
}

}  // namespace kerf::sym
