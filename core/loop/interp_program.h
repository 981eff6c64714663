#pragma once
// The meaning of a program, executed: steps in order, launches by the interpreter of kernels (interp.h), extern calls by
// a function of the caller. Slow and checked: the oracle that compares a scheduled program with an unscheduled one.
//
//   ProgramMemory memory(program, sizes);               // sizes: values of Program::sizes in order
//   memory.write(view, elements);                        // of each input
//   interpret(program, memory, error, call_extern);
//   std::vector<Scalar> result = memory.read(program.outputs[0].view);
//
// Memory that nobody wrote holds 0xff bytes (NaN, -1), so that reading it shows. No buffer shares memory with another.
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "loop/program.h"
#include "target/artifact.h"

namespace kerf::loop {

class ProgramMemory {
 public:
  ProgramMemory(const Program& program, std::span<const int64_t> sizes);

  int64_t evaluate(sym::Expr expr) const;
  void* data(target::BufferIndex buffer) { return buffers_.at(buffer).data(); }
  int64_t elements(target::BufferIndex buffer) const;

  // The buffer of an argument of the call; kNoBuffer when the program has none for it.
  target::BufferIndex input(int input_index) const;

  // Elements of a view in row-major order of its positions. Reading or writing outside the buffer is a CHECK.
  std::vector<Scalar> read(const target::TensorView& view) const;
  void write(const target::TensorView& view, std::span<const Scalar> elements);

 private:
  std::vector<int64_t> addresses(const target::TensorView& view) const;

  const Program& program_;
  std::vector<int64_t> sizes_;
  std::vector<std::vector<char>> buffers_;
};

// The whole buffer behind an extern's result.
target::TensorView view_of(sym::Context& context, const target::ExternResult& result);

// Computes one extern call: reads its arguments and writes its results that have a buffer.
using ExternFunction = std::function<void(const target::ExternCall& call, ProgramMemory& memory)>;

// The first failure of a kernel is left in `error`, and the steps after it are not run.
void interpret(const Program& program, ProgramMemory& memory, target::KernelError& error,
               const ExternFunction& call_extern = {});

}  // namespace kerf::loop
