#pragma once
// Text of the data that programs and plans share: views, extern calls, outputs, size sources.
//
//   view     %3: f32[n, 64] strides [64, 1] offset 128          (no offset: 0; `none` for a result nobody uses)
//   extern   extern "aten.mm.default"(%0: ..., int 2, beta = float 0.5, [..]) matmul_like
//              result %4: f32[n, 8] strides [8, 1]               (`opaque` after it for a foreign dtype)
//              reason "..."
//              source "..."
//   output   %3: ... alias 0  |  int n + 1  |  none
//   source   size n = input 0 dim 1  |  size n = input 2
// Printing is canonical; Reader gives the same data back (a NaN loses its payload).
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/lexer.h"
#include "target/extern_call.h"

namespace kerf::target {

std::string quoted(std::string_view text);
std::string to_text(std::span<const sym::Expr> list);  // "[n, 64]"
std::string to_text(const TensorView& view);
std::string to_text(const SizeSource& source);
std::string to_text(const ProgramOutput& output);
std::string to_text(const ExternCall& call, std::string_view indent);  // several lines, each ended

// Reads what is printed above from a lexer, after its leading word (`extern`, `size`). Throws ParseError.
class Reader {
 public:
  Reader(base::Lexer& lexer, sym::Context& context) : lexer_(lexer), context_(context) {}

  // What names may refer to: sizes by their symbols, buffers `%i` with i < count.
  void add_size(sym::Expr symbol) { sizes_.push_back(symbol); }
  void set_buffer_count(size_t count) { buffer_count_ = count; }

  std::string string();
  DType dtype();
  int index();  // 0 to a million
  sym::Expr expression();
  std::vector<sym::Expr> expressions();
  BufferIndex buffer();
  TensorView view();
  SizeSource size_source();
  ProgramOutput output();
  ExternCall extern_call();

 private:
  TensorView tensor();
  ExternResult result();
  ExternArgumentList arguments(std::string_view closing);
  decltype(ExternArgument::value) argument_value();

  base::Lexer& lexer_;
  sym::Context& context_;
  std::vector<sym::Expr> sizes_;
  size_t buffer_count_ = 0;
  int nesting_ = 0;  // of argument lists
};

}  // namespace kerf::target
