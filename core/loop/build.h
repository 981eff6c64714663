#pragma once
// KernelBuilder: kernels written in C++, for lowering, scheduling and tests. It infers dtypes, keeps the open
// blocks and CHECKs what a call can know to be wrong (dtypes of an op, closing what is not open); `verify`
// checks the rest.
//
//   KernelBuilder b(context, "row_sum");
//   sym::Expr n = b.add_size("n", {1, 4096});
//   BufferId x = b.add_buffer("x", DType::f32, {n, b.integer(64)});
//   BufferId y = b.add_buffer("y", DType::f32, {n}, BufferMode::out);
//   b.loop("i", n, [&](sym::Expr i) {
//     auto element = [&](sym::Expr j) { return b.load(x, i * 64 + j); };
//     b.store(y, i, b.reduce(ops::ReduceOp::sum, "j", b.integer(64), element));
//   });
//   Kernel kernel = b.finish();
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "loop/kernel.h"

namespace kerf::loop {

class KernelBuilder {
 public:
  KernelBuilder(sym::Context& context, std::string name);

  // --- declarations
  sym::Expr add_size(std::string_view name, sym::Range range = {}, sym::Modulus modulus = {});
  void add_sizes(const std::vector<Size>& sizes);
  BufferId add_buffer(std::string name, DType dtype, std::vector<sym::Expr> shape,
                      BufferMode mode = BufferMode::in);
  // Where the kernel or the context already uses the name, a number is appended.
  AxisId add_axis(std::string_view name, sym::Expr extent, Role role = Role::serial, int lanes = 0);
  sym::Expr symbol(AxisId axis) const { return kernel_.axes[axis].symbol; }
  sym::Expr integer(int64_t value) { return kernel_.context->constant(value); }

  // --- values, defined where the builder stands
  ValueId constant(DType dtype, double value);
  ValueId constant(const Scalar& value);
  ValueId index(sym::Expr expr);
  ValueId load(BufferId buffer, sym::Expr index);
  ValueId load(BufferId buffer, sym::Expr index, ValueId mask, ValueId other);
  ValueId apply(ops::ScalarOp op, std::vector<ValueId> operands);  // not for cast and bitcast
  ValueId cast(ValueId value, DType dtype);                        // the value itself if it has the dtype
  ValueId bitcast(ValueId value, DType dtype);

  // A value in index expressions.
  sym::Expr as_expr(ValueId value);
  DType dtype(ValueId value) const { return kernel_.values[value].dtype; }

  // --- statements
  void store(BufferId buffer, sym::Expr index, ValueId value, StoreMode mode = StoreMode::assign);
  void barrier();

  void open_loop(AxisId axis);
  void close_loop();
  void open_guard(ValueId condition);
  void close_guard();
  void open_reduce(std::vector<AxisId> axes);
  struct Part {
    ops::ReduceOp op;
    std::vector<ValueId> yields;
  };
  std::vector<ValueId> close_reduce(const std::vector<Part>& parts);

  // --- the same, closed by the end of the lambda
  template <std::invocable<sym::Expr> Body>
  void loop(std::string_view name, sym::Expr extent, Body&& body) {
    AxisId axis = add_axis(name, extent);
    open_loop(axis);
    body(symbol(axis));
    close_loop();
  }
  template <std::invocable<sym::Expr> Body>
  ValueId reduce(ops::ReduceOp op, std::string_view name, sym::Expr extent, Body&& body) {
    AxisId axis = add_axis(name, extent);
    open_reduce({axis});
    ValueId yielded = body(symbol(axis));
    return close_reduce({{op, {yielded}}})[0];
  }
  template <std::invocable<> Body>
  void guard(ValueId condition, Body&& body) {
    open_guard(condition);
    body();
    close_guard();
  }

  const Kernel& kernel() const { return kernel_; }
  Kernel finish();

 private:
  ValueId define(Value value);
  void add(Stmt stmt) { blocks_.back().push_back(std::move(stmt)); }
  template <class T>
  T close();

  Kernel kernel_;
  std::vector<Block> blocks_;  // the kernel's body and that of each open statement
  std::vector<Stmt> open_;     // without their bodies
};

}  // namespace kerf::loop
