// The f32 math of compiled kernels against f64, over a sample of all floats: no error above the row's `ulp`, and the
// same limits. KERF_STRIDE=1 takes every float (minutes for each function) in place of every 8191st, KERF_ONLY=exp one
// function, KERF_REPORT=1 prints what was found.
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>

#include "codegen/compile.h"
#include "loop/build.h"
#include "ops/scalar_op.h"

#include <doctest/doctest.h>

using namespace kerf;

namespace {

constexpr int64_t kBlock = 1 << 16;

// y[i] = op(x[i]) over kBlock floats.
target::CpuArtifact compile_op(sym::Context& context, ops::ScalarOp op, const target::CpuTarget& target) {
  loop::KernelBuilder b(context, "one_op");
  sym::Expr n = b.integer(kBlock);
  loop::BufferId x = b.add_buffer("x", DType::f32, {n});
  loop::BufferId y = b.add_buffer("y", DType::f32, {n}, loop::BufferMode::out);
  loop::AxisId axis = b.add_axis("i", n, loop::Role::vector, 16);
  b.open_loop(axis);
  b.store(y, b.symbol(axis), b.apply(op, {b.load(x, b.symbol(axis))}));
  b.close_loop();
  auto artifact = codegen::compile(b.finish(), target, {});
  REQUIRE_MESSAGE(artifact, (artifact ? "" : artifact.reason()));
  return *artifact;
}

double unit_in_last_place(double x) {
  double size = std::max(std::abs(x), 0x1p-126);
  return std::ldexp(1.0, std::ilogb(size) - 23);
}

double error_of(ops::ScalarOp op, float x, float y) {
  Scalar narrow = Scalar::of(DType::f32, x), wide = Scalar::of(DType::f64, x);
  double nearest = ops::evaluate(op, DType::f32, std::span(&narrow, 1)).f;
  if (std::isnan(nearest) || std::isnan(y)) return std::isnan(nearest) && std::isnan(y) ? 0 : HUGE_VAL;
  if (nearest == y) return nearest == 0 && std::signbit(nearest) != std::signbit(y) ? HUGE_VAL : 0.5;
  double exact = ops::evaluate(op, DType::f64, std::span(&wide, 1)).f;
  if (std::isinf(y) && std::abs(exact) < std::numeric_limits<float>::max()) return HUGE_VAL;
  double got = std::isinf(y) ? std::copysign(0x1p128, y) : y;
  return std::abs(got - exact) / unit_in_last_place(exact);
}

struct Worst {
  double error = 0;
  float x = 0;
};

Worst worst_error(ops::ScalarOp op, const target::CpuTarget& target, uint64_t stride) {
  sym::Context context;
  target::CpuArtifact artifact = compile_op(context, op, target);
  std::vector<float> x(kBlock), y(kBlock);
  void* buffers[] = {x.data(), y.data()};
  target::KernelError error;
  Worst worst;
  for (uint64_t first = 0; first < uint64_t{1} << 32; first += stride * kBlock) {
    for (int64_t i = 0; i < kBlock; ++i) {
      x[static_cast<size_t>(i)] =
          std::bit_cast<float>(static_cast<uint32_t>(first + static_cast<uint64_t>(i) * stride));
    }
    artifact.entry(buffers, nullptr, 0, 1, nullptr, &error);
    for (size_t i = 0; i < x.size(); ++i) {
      double e = error_of(op, x[i], y[i]);
      if (!(e <= worst.error)) worst = {e, x[i]};
    }
  }
  return worst;
}

constexpr ops::ScalarOp kUnary[] = {
    ops::ScalarOp::exp,   ops::ScalarOp::exp2,  ops::ScalarOp::expm1,      ops::ScalarOp::log,
    ops::ScalarOp::log2,  ops::ScalarOp::log10, ops::ScalarOp::log1p,      ops::ScalarOp::sigmoid,
    ops::ScalarOp::tanh,  ops::ScalarOp::erf,   ops::ScalarOp::erfc,       ops::ScalarOp::sin,
    ops::ScalarOp::cos,   ops::ScalarOp::rsqrt, ops::ScalarOp::reciprocal, ops::ScalarOp::sqrt,
    ops::ScalarOp::tan,   ops::ScalarOp::asin,  ops::ScalarOp::acos,       ops::ScalarOp::atan,
    ops::ScalarOp::sinh,  ops::ScalarOp::cosh,  ops::ScalarOp::asinh,      ops::ScalarOp::acosh,
    ops::ScalarOp::atanh,
};

target::CpuTarget narrow_target() {
  target::CpuTarget target = codegen::host_target();
  target.cpu = "x86-64-v3";
  target.features = "+avx2,+fma,+f16c";
  target.vector_bytes = 32;
  return target;
}

}  // namespace

TEST_CASE("functions of one f32 stay within the error of their row") {
  const char* wanted = std::getenv("KERF_STRIDE");
  uint64_t stride = wanted ? std::strtoull(wanted, nullptr, 10) : 8191;
  bool report = std::getenv("KERF_REPORT") != nullptr;
  const char* only = std::getenv("KERF_ONLY");
  for (ops::ScalarOp op : kUnary) {
    if (only && ops::to_text(op) != only) continue;
    CAPTURE(ops::to_text(op));
    for (const target::CpuTarget& target : {codegen::host_target(), narrow_target()}) {
      Worst worst = worst_error(op, target, stride);
      CAPTURE(worst.x);
      if (report) {
        std::printf("%-10s %2d bytes: %.3f ulp at %a\n", std::string(ops::to_text(op)).c_str(),
                    target.vector_bytes, worst.error, static_cast<double>(worst.x));
      }
      CHECK_LE(worst.error, ops::info(op).ulp);
    }
  }
}

TEST_CASE("limits of functions of one f32") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kSpecial[] = {0.0f,
                                -0.0f,
                                1.0f,
                                -1.0f,
                                kInfinity,
                                -kInfinity,
                                std::numeric_limits<float>::quiet_NaN(),
                                1e-45f,
                                -1e-45f,
                                0x1.fffffep-127f,
                                0x1.fffffep127f,
                                -0x1.fffffep127f,
                                88.72283f,
                                88.72284f,
                                -103.97208f,
                                -103.9721f,
                                0x1p-25f,
                                1e10f,
                                -1e10f};
  for (ops::ScalarOp op : kUnary) {
    CAPTURE(ops::to_text(op));
    sym::Context context;
    target::CpuArtifact artifact = compile_op(context, op, codegen::host_target());
    std::vector<float> x(kBlock), y(kBlock);
    std::copy(std::begin(kSpecial), std::end(kSpecial), x.begin());
    void* buffers[] = {x.data(), y.data()};
    target::KernelError error;
    artifact.entry(buffers, nullptr, 0, 1, nullptr, &error);
    for (size_t i = 0; i < std::size(kSpecial); ++i) {
      CAPTURE(x[i]);
      CAPTURE(y[i]);
      CHECK_LE(error_of(op, x[i], y[i]), ops::info(op).ulp);
    }
  }
}

// Pairs around 1, where the result is a number, and everywhere; against f64.
TEST_CASE("powers of f32 stay within the error of their row, limits included") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kSpecial[] = {0.0f,        -0.0f,          1.0f,
                                -1.0f,       2.0f,           -2.0f,
                                3.0f,        -3.0f,          0.5f,
                                -0.5f,       1.5f,           -1.5f,
                                kInfinity,   -kInfinity,     std::numeric_limits<float>::quiet_NaN(),
                                1e-45f,      -1e-45f,        0x1.fffffep127f,
                                16777216.0f, 16777215.0f,    -16777215.0f,
                                1e30f,       0x1.fffffep-1f, 0x1.000002p+0f};
  std::vector<std::pair<float, float>> pairs;
  for (float a : kSpecial) {
    for (float b : kSpecial) pairs.emplace_back(a, b);
  }
  std::mt19937 random(7);
  std::uniform_real_distribution<float> base(0, 3), exponent(-60, 60);
  while (pairs.size() < 60000) pairs.emplace_back(base(random), exponent(random));
  while (pairs.size() < 120000) {
    pairs.emplace_back(std::bit_cast<float>(static_cast<uint32_t>(random())),
                       std::bit_cast<float>(static_cast<uint32_t>(random())));
  }
  auto n = static_cast<int64_t>(pairs.size());

  sym::Context context;
  loop::KernelBuilder builder(context, "powers");
  sym::Expr count = builder.integer(n);
  loop::BufferId x = builder.add_buffer("x", DType::f32, {count}),
                 y = builder.add_buffer("y", DType::f32, {count});
  loop::BufferId z = builder.add_buffer("z", DType::f32, {count}, loop::BufferMode::out);
  loop::AxisId axis = builder.add_axis("i", count, loop::Role::vector, 16);
  builder.open_loop(axis);
  sym::Expr i = builder.symbol(axis);
  builder.store(z, i, builder.apply(ops::ScalarOp::pow, {builder.load(x, i), builder.load(y, i)}));
  builder.close_loop();
  loop::Kernel kernel = builder.finish();

  std::vector<float> bases, exponents, results(pairs.size());
  for (auto [a, b] : pairs) {
    bases.push_back(a);
    exponents.push_back(b);
  }
  void* buffers[] = {bases.data(), exponents.data(), results.data()};
  for (const target::CpuTarget& target : {codegen::host_target(), narrow_target()}) {
    auto artifact = codegen::compile(kernel, target, {});
    REQUIRE(artifact);
    target::KernelError error;
    artifact->entry(buffers, nullptr, 0, 1, nullptr, &error);
    double worst = 0;
    for (size_t at = 0; at < pairs.size(); ++at) {
      double exact = std::pow(static_cast<double>(bases[at]), static_cast<double>(exponents[at]));
      float nearest = static_cast<float>(exact), got = results[at];
      CAPTURE(bases[at]);
      CAPTURE(exponents[at]);
      if (std::isnan(nearest) || std::isinf(nearest) || nearest == 0) {
        REQUIRE((std::isnan(nearest) ? std::isnan(got)
                                     : got == nearest && std::signbit(got) == std::signbit(nearest)));
      } else {
        worst = std::max(worst, std::abs(got - exact) / unit_in_last_place(exact));
      }
    }
    if (std::getenv("KERF_REPORT"))
      std::printf("pow        %2d bytes: %.3f ulp\n", target.vector_bytes, worst);
    CHECK_LE(worst, ops::info(ops::ScalarOp::pow).ulp);
  }
}
