// Every scalar operation over special and ordinary values, against the interpreter.
#include "same_as_interpreter.h"

#include "loop/build.h"
#include "ops/scalar_op.h"

#include <doctest/doctest.h>

using namespace kerf;
using ops::ScalarOp;
using ops::Typing;

namespace {

constexpr DType kAll[] = {DType::b1,  DType::u8,  DType::i8,   DType::i16, DType::i32,
                          DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64};

constexpr ScalarOp kOps[] = {
#define OP(name, ...) ScalarOp::name,
#include "ops/scalar_ops.def"
#undef OP
};

// The operand types of every use the op's row allows, with the result's for conversions.
struct Signature {
  std::vector<DType> operands;
  std::optional<DType> result;
};

std::vector<Signature> signatures(ScalarOp op) {
  const ops::OpInfo& info = ops::info(op);
  std::vector<Signature> found;
  for (DType dtype : kAll) {
    if (info.types == Typing::conversion) {
      for (DType to : kAll) {
        if (op == ScalarOp::cast || byte_size(to) == byte_size(dtype)) found.push_back({{dtype}, to});
      }
      continue;
    }
    Signature s{std::vector<DType>(static_cast<size_t>(info.arity), dtype), std::nullopt};
    if (info.types == Typing::select) s.operands[0] = DType::b1;
    s.result = ops::result_dtype(op, s.operands);
    if (s.result) found.push_back(s);
  }
  return found;
}

// y[i] = op(x0[i], x1[i], ...), in vectors of `lanes`.
loop::Kernel kernel_for(sym::Context& context, ScalarOp op, const Signature& s, int lanes) {
  loop::KernelBuilder b(context, "op");
  sym::Expr n = b.integer(500);
  std::vector<loop::BufferId> inputs;
  for (size_t i = 0; i < s.operands.size(); ++i)
    inputs.push_back(b.add_buffer("x" + std::to_string(i), s.operands[i], {n}));
  loop::BufferId y = b.add_buffer("y", *s.result, {n}, loop::BufferMode::out);
  loop::AxisId axis = lanes > 1 ? b.add_axis("i", n, loop::Role::vector, lanes) : b.add_axis("i", n);
  b.open_loop(axis);
  std::vector<loop::ValueId> operands;
  for (loop::BufferId x : inputs) operands.push_back(b.load(x, b.symbol(axis)));
  // Of numbers of both signs the sum cancels, in eager as well; its relative error then has no bound.
  if (op == ScalarOp::logaddexp) {
    for (loop::ValueId& operand : operands) operand = b.apply(ScalarOp::abs, {operand});
  }
  loop::ValueId result = op == ScalarOp::cast      ? b.cast(operands[0], *s.result)
                         : op == ScalarOp::bitcast ? b.bitcast(operands[0], *s.result)
                                                   : b.apply(op, operands);
  b.store(y, b.symbol(axis), result);
  b.close_loop();
  return b.finish();
}

// A failing kernel reports its first failure; which lane that is, is tested elsewhere.
double tolerance(ScalarOp op, const Signature& s) {
  double ulp = ops::info(op).ulp;
  if (ulp <= 0.5 || !is_floating(s.operands[0])) return 0;
  return s.operands[0] == DType::f64 ? std::max(ulp, 4.0) : ulp + 0.5;  // the interpreter's own rounding
}

}  // namespace

TEST_CASE("operations agree with the interpreter on special and ordinary values") {
  for (ScalarOp op : kOps) {
    CAPTURE(ops::to_text(op));
    for (const Signature& s : signatures(op)) {
      CAPTURE(to_text(s.operands.back()));
      CAPTURE(to_text(*s.result));
      sym::Context context;
      for (int lanes : {1, 16}) {
        loop::Kernel kernel = kernel_for(context, op, s, lanes);
        for (uint64_t seed : {1, 2}) {
          testing::KernelData data = testing::random_data(kernel, seed, testing::Fill::special);
          testing::KernelData expected = testing::interpreted(kernel, data);
          for (const target::CpuTarget& target : {codegen::host_target(), testing::avx2_target()}) {
            CAPTURE(lanes);
            CAPTURE(target.vector_bytes);
            testing::KernelData actual = testing::compiled(kernel, data, {.target = target});
            CHECK_EQ(testing::difference(kernel, expected, actual, tolerance(op, s)).value_or(""), "");
          }
        }
      }
    }
  }
}
