// Direct calls into a real libtorch. The core builds and tests without torch: the library comes by the environment
// variable KERF_TORCH_CPU (tests/CMakeLists.txt sets it to the one of .venv), and without it the tests say so.
#include "runtime/cpu/aoti.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>

#include "base/error.h"
#include "fake_host.h"
#include "plan_builder.h"
#include "runtime/executor.h"

using namespace kerf;
using namespace kerf::runtime;
using namespace kerf::runtime::testing;

namespace {

// Local symbols, as when Python loads an extension module.
bool has_torch() {
  static const bool loaded = [] {
    const char* path = std::getenv("KERF_TORCH_CPU");
    if (!path || !*path) return false;
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library, dlerror());
    return true;
  }();
  if (!loaded) MESSAGE("KERF_TORCH_CPU is not set: not tested");
  return loaded;
}

double element(const FakeTensor& tensor, int64_t i) {
  return load_scalar(tensor.data, i, tensor.dtype).as_double();
}

FakeTensor* numbers(FakeHost& host, DType dtype, std::vector<int64_t> shape, int seed) {
  FakeTensor* tensor = host.make(dtype, std::move(shape));
  int64_t count = 1;
  for (int64_t size : tensor->shape) count *= size;
  for (int64_t i = 0; i < count; ++i)
    store_scalar(tensor->data, i, Scalar::of(dtype, static_cast<double>((i * 7 + seed) % 11 - 5)));
  return tensor;
}

// A host that must not be asked to call anything.
struct DirectOnlyHost : FakeHost {
  void call(const target::ExternCall& call, const CallValueList&, std::span<HostTensor>) override {
    throw InternalError("host call of " + call.op);
  }
};

void negate(void* const* buffers, const int64_t*, int64_t begin, int64_t end, void*, target::KernelError*) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<float*>(buffers[1])[i] = -static_cast<const float*>(buffers[0])[i];
}

target::ExternCall mm_call(PlanBuilder& b) {
  BufferIndex x = b.input({"2", "3"});
  BufferIndex w = b.input({"3", "4"});
  BufferIndex y = b.output({"2", "4"});
  return b.call("aten.mm.default", {{b.view(x, {"2", "3"}), ""}, {b.view(w, {"3", "4"}), ""}}, y, {"2", "4"});
}

}  // namespace

TEST_CASE("which calls have a direct entry") {
  if (!has_torch()) {
    CHECK_FALSE(cpu::has_direct_entry("aten.mm.default"));
    return;
  }
  for (const char* op : {"aten.mm.default", "aten.bmm.default", "aten.addmm.default", "aten.baddbmm.default"})
    CHECK(cpu::has_direct_entry(op));
  CHECK_FALSE(cpu::has_direct_entry("aten.mm.out"));
  CHECK_FALSE(cpu::has_direct_entry("aten.convolution.default"));
  PlanBuilder b;
  const target::ExternCall good = mm_call(b);
  CHECK(cpu::has_direct_entry(good));
  auto changed = [&](auto&& change) {
    target::ExternCall call = good;
    change(call);
    return cpu::has_direct_entry(call);
  };
  CHECK_FALSE(changed([](auto& c) { c.op = "aten.addmm.default"; }));
  CHECK_FALSE(changed([](auto& c) { c.results[0].dtype = DType::f64; }));
  CHECK_FALSE(
      changed([](auto& c) { std::get<target::TensorView>(c.arguments[0].value).dtype = DType::bf16; }));
  CHECK_FALSE(changed([](auto& c) { c.arguments[0].keyword = "self"; }));
  CHECK_FALSE(changed([](auto& c) { c.arguments.push_back({1.0, "gamma"}); }));
  CHECK_FALSE(changed([](auto& c) { c.results[0].is_opaque = true; }));
  CHECK_FALSE(changed([](auto& c) {
    c.results[0].dtype = DType::i64;
    for (auto& a : c.arguments) std::get<target::TensorView>(a.value).dtype = DType::i64;
  }));
}

TEST_CASE("mm, addmm with scales and a broadcast bias, through a temporary, with a dynamic size") {
  if (!has_torch()) return;
  PlanBuilder b;
  b.size("n", 0, 0);
  BufferIndex x = b.input({"n", "3"});
  BufferIndex w = b.input({"4", "3"});
  BufferIndex bias = b.input({"4"});
  BufferIndex t = b.temp({"n", "4"});
  BufferIndex y = b.output({"n", "4"});
  BufferIndex z = b.output({"n", "4"});
  target::TensorView transposed = {w, DType::f32, b.exprs({"3", "4"}), b.exprs({"1", "3"}), b.expr("0")};
  b.call("aten.mm.default", {{b.view(x, {"n", "3"}), ""}, {transposed, ""}}, t, {"n", "4"});
  b.launch(negate, {t, y}, {}, "4*n");
  b.call("aten.addmm.default",
         {{b.view(bias, {"4"}), ""},
          {b.view(x, {"n", "3"}), ""},
          {transposed, ""},
          {b.expr("2"), "beta"},
          {0.5, "alpha"}},
         z, {"n", "4"});
  Executor executor(b.finish());
  DirectOnlyHost host;
  FakeTensor* weight = numbers(host, DType::f32, {4, 3}, 3);
  FakeTensor* shift = numbers(host, DType::f32, {4}, 5);
  for (int64_t n : {3, 0, 1, 5, 3}) {
    FakeTensor* in = numbers(host, DType::f32, {n, 3}, static_cast<int>(n));
    std::vector<CallInput> inputs = {{in->ref(), 0}, {weight->ref(), 0}, {shift->ref(), 0}};
    auto result = executor.run(host, inputs);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < 4; ++j) {
        double product = 0;
        for (int64_t k = 0; k < 3; ++k) product += element(*in, i * 3 + k) * element(*weight, j * 3 + k);
        CHECK(element(*static_cast<FakeTensor*>(result[0].tensor), i * 4 + j) == -product);
        CHECK(element(*static_cast<FakeTensor*>(result[1].tensor), i * 4 + j) ==
              2 * element(*shift, j) + 0.5 * product);
      }
  }
}

TEST_CASE("bmm and baddbmm in all dtypes") {
  if (!has_torch()) return;
  for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    PlanBuilder b;
    BufferIndex x = b.input({"2", "3", "4"}, dtype);
    BufferIndex w = b.input({"2", "4", "2"}, dtype);
    BufferIndex y = b.output({"2", "3", "2"}, dtype);
    BufferIndex z = b.output({"2", "3", "2"}, dtype);
    auto left = b.view(x, {"2", "3", "4"});
    auto right = b.view(w, {"2", "4", "2"});
    b.call("aten.bmm.default", {{left, ""}, {right, ""}}, y, {"2", "3", "2"}, dtype);
    b.call("aten.baddbmm.default", {{b.view(y, {"2", "3", "2"}), ""}, {left, ""}, {right, ""}}, z,
           {"2", "3", "2"}, dtype);
    Executor executor(b.finish());
    DirectOnlyHost host;
    FakeTensor* a = numbers(host, dtype, {2, 3, 4}, 1);
    FakeTensor* c = numbers(host, dtype, {2, 4, 2}, 2);
    std::vector<CallInput> inputs = {{a->ref(), 0}, {c->ref(), 0}};
    auto result = executor.run(host, inputs);
    for (int64_t m = 0; m < 2; ++m)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 2; ++j) {
          double product = 0;  // small integers: exact in every dtype
          for (int64_t k = 0; k < 4; ++k)
            product += element(*a, m * 12 + i * 4 + k) * element(*c, m * 8 + k * 2 + j);
          int64_t at = m * 6 + i * 2 + j;
          CHECK(element(*static_cast<FakeTensor*>(result[0].tensor), at) == product);
          CHECK(element(*static_cast<FakeTensor*>(result[1].tensor), at) == 2 * product);
        }
  }
}

TEST_CASE("what torch refuses is a RuntimeError with op, shapes and torch's words") {
  if (!has_torch()) return;
  PlanBuilder b;
  BufferIndex x = b.input({"2", "3"});
  BufferIndex y = b.output({"2", "3"});
  b.call("aten.mm.default", {{b.view(x, {"2", "3"}), ""}, {b.view(x, {"2", "3"}), ""}}, y, {"2", "3"});
  Executor executor(b.finish());
  DirectOnlyHost host;
  FakeTensor* in = host.make(DType::f32, {2, 3});
  std::vector<CallInput> inputs = {{in->ref(), 0}};
  CHECK_THROWS_WITH_AS(
      executor.run(host, inputs),
      "aten.mm.default(f32[2, 3], f32[2, 3]) failed: mat1 and mat2 shapes cannot be multiplied "
      "(2x3 and 2x3)",
      RuntimeError);
  CHECK(host.live() == 1);
}
