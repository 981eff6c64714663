#pragma once
// Evaluation on integers. `evaluate` walks the expression; `EvalProgram` compiles many expressions over the
// same symbols once, for the executor's sizes and the interpreter's indices.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sym/expr.h"

namespace kerf::sym {

// nullopt on overflow or division by zero.
std::optional<int64_t> evaluate(Expr expr, const std::function<int64_t(const Symbol&)>& value_of);

int64_t floor_div_int(int64_t a, int64_t b);  // b != 0, and not the minimum by -1
int64_t mod_int(int64_t a, int64_t b);        // b != 0

// A straight-line register program: `inputs` are bound to the first registers, each expression of `outputs`
// to an output slot. Shared subexpressions are computed once. No allocation when run.
class EvalProgram {
 public:
  EvalProgram() = default;
  EvalProgram(std::span<const Expr> inputs, std::span<const Expr> outputs);
  size_t input_count() const { return input_count_; }
  size_t output_count() const { return output_registers_.size(); }
  // registers: scratch of register_count() elements. Throws InternalError on overflow or division by zero.
  void run(std::span<const int64_t> inputs, std::span<int64_t> outputs, std::span<int64_t> registers) const;
  size_t register_count() const { return register_count_; }

 private:
  class Builder;
  struct Instruction {
    Kind kind;
    uint32_t destination, left, right;
  };
  std::vector<Instruction> instructions_;
  std::vector<std::pair<uint32_t, int64_t>> constants_;
  std::vector<uint32_t> output_registers_;
  size_t input_count_ = 0;
  size_t register_count_ = 0;
};

}  // namespace kerf::sym
