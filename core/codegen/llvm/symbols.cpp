#include "codegen/llvm/symbols.h"

#include <dlfcn.h>

#include <iterator>

#include "ops/scalar_op.h"

namespace kerf::codegen {

namespace {

double evaluate_one(ops::ScalarOp op, DType dtype, double x) {
  Scalar operand = Scalar::of(dtype, x);
  return ops::evaluate(op, dtype, std::span(&operand, 1)).f;
}

float erfinv_f32(float x) { return static_cast<float>(evaluate_one(ops::ScalarOp::erfinv, DType::f32, x)); }
double erfinv_f64(double x) { return evaluate_one(ops::ScalarOp::erfinv, DType::f64, x); }
// libm's own writes the global signgam, which threads would race for.
float lgamma_f32(float x) { return static_cast<float>(evaluate_one(ops::ScalarOp::lgamma, DType::f32, x)); }
double lgamma_f64(double x) { return evaluate_one(ops::ScalarOp::lgamma, DType::f64, x); }

struct OwnSymbol {
  const char* name;
  void* address;
};

const OwnSymbol kOwn[] = {
    {"kerf_erfinvf", reinterpret_cast<void*>(erfinv_f32)},
    {"kerf_erfinv", reinterpret_cast<void*>(erfinv_f64)},
    {"kerf_lgammaf", reinterpret_cast<void*>(lgamma_f32)},
    {"kerf_lgamma", reinterpret_cast<void*>(lgamma_f64)},
};

}  // namespace

void* find_symbol(const std::string& name) {
  for (const OwnSymbol& symbol : kOwn) {
    if (name == symbol.name) return symbol.address;
  }
  return dlsym(RTLD_DEFAULT, name.c_str());
}

}  // namespace kerf::codegen
