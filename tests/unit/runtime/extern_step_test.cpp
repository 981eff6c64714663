#include "runtime/extern_step.h"

#include <doctest/doctest.h>

#include <limits>

#include "base/error.h"
#include "fake_host.h"
#include "plan_builder.h"
#include "runtime/executor.h"

using namespace kerf;
using namespace kerf::runtime;
using namespace kerf::runtime::testing;

namespace {

void negate(void* const* buffers, const int64_t*, int64_t begin, int64_t end, void*, target::KernelError*) {
  const float* in = static_cast<const float*>(buffers[0]);
  float* out = static_cast<float*>(buffers[1]);
  for (int64_t i = begin; i < end; ++i) out[i] = -in[i];
}

// Doubles a vector into a new tensor of the host.
FakeHost::Function doubling(FakeHost& host) {
  return [&host](const CallValueList& arguments, std::span<HostTensor> results) {
    const auto& in = std::get<CallTensor>(arguments[0].value);
    FakeTensor* out = host.make(DType::f32, in.shape);
    for (int64_t i = 0; i < in.shape[0]; ++i)
      out->as<float>()[i] = 2 * static_cast<const float*>(in.data)[i * in.strides[0]];
    results[0] = out;
  };
}

std::vector<CallOutput> run(Executor& executor, FakeHost& host, FakeTensor* input) {
  std::vector<CallInput> inputs = {{input->ref(), 0}};
  return executor.run(host, inputs);
}

const float* floats(const CallOutput& output) { return static_cast<FakeTensor*>(output.tensor)->as<float>(); }

}  // namespace

TEST_CASE("an adopted result feeds a kernel and is released after its last use") {
  PlanBuilder b;
  b.size("n", 0, 0);
  BufferIndex x = b.input({"n"});
  BufferIndex d = b.adopted({"n"});
  BufferIndex y = b.output({"n"});
  BufferIndex e = b.adopted({"n"});
  b.call("double", {{b.view(x, {"n"}), ""}}, d, {"n"});
  b.launch(negate, {d, y}, {}, "n");
  b.call("double", {{b.view(y, {"n"}), ""}}, e, {"n"});
  Executor executor(b.finish());
  FakeHost host;
  std::vector<size_t> live;
  auto twice = doubling(host);
  host.define("double", [&](const CallValueList& arguments, std::span<HostTensor> results) {
    live.push_back(host.live());
    twice(arguments, results);
  });
  FakeTensor* in = host.floats({1, 2, 3});
  auto result = run(executor, host, in);
  CHECK(floats(result[0])[2] == -6);
  CHECK(live == std::vector<size_t>{1, 2});  // the second call sees the input and the output
  CHECK(host.live() == 2);
}

TEST_CASE("arguments arrive evaluated, nested and with their host tensors") {
  PlanBuilder b;
  b.size("n", 0, 0);
  BufferIndex x = b.input({"n"});
  BufferIndex t = b.temp({"n"});
  BufferIndex d = b.adopted({"n"});
  b.launch(negate, {x, t}, {}, "n");
  target::ExternArgumentList list = {{b.view(t, {"2"}, "n - 2"), ""}, {b.expr("n + 1"), ""}};
  b.call("probe",
         {{b.view(x, {"n"}), ""},
          {std::monostate{}, ""},
          {true, ""},
          {0.5, "scale"},
          {std::string("mean"), ""},
          {target::TorchConstant{target::TorchConstant::Kind::dtype, "float32"}, "dtype"},
          {list, ""}},
         d, {"n"});
  Executor executor(b.finish());
  FakeHost host;
  FakeTensor* in = host.floats({1, 2, 3});
  int calls = 0;
  host.define("probe", [&](const CallValueList& arguments, std::span<HostTensor> results) {
    ++calls;
    REQUIRE(arguments.size() == 7);
    const auto& first = std::get<CallTensor>(arguments[0].value);
    CHECK(first.base != nullptr);
    CHECK(std::holds_alternative<std::monostate>(arguments[1].value));
    CHECK(std::get<bool>(arguments[2].value));
    CHECK(std::get<double>(arguments[3].value) == 0.5);
    CHECK(arguments[3].keyword == "scale");
    CHECK(std::get<std::string>(arguments[4].value) == "mean");
    CHECK(std::get<target::TorchConstant>(arguments[5].value).name == "float32");
    const auto& nested = std::get<CallValueList>(arguments[6].value);
    const auto& part = std::get<CallTensor>(nested[0].value);
    int64_t n = first.shape[0];
    CHECK(part.base == nullptr);
    CHECK(part.offset == n - 2);
    CHECK(static_cast<const float*>(part.data)[1] == -static_cast<const float*>(first.data)[n - 1]);
    CHECK(std::get<int64_t>(nested[1].value) == n + 1);
    results[0] = host.make(DType::f32, {n});
  });
  run(executor, host, in);
  run(executor, host, host.floats({4, 5, 6, 7}));
  run(executor, host, in);
  CHECK(calls == 3);
  CHECK(host.live() == 2);
}

TEST_CASE("an adopted result can be returned, as itself and as a view") {
  PlanBuilder b;
  BufferIndex x = b.input({"4"});
  BufferIndex d = b.adopted({"4"});
  b.call("double", {{b.view(x, {"4"}), ""}}, d, {"4"});
  b.output_of(d, {"2"}, "2");
  b.output_of(d, {"4"});
  Executor executor(b.finish());
  FakeHost host;
  host.define("double", doubling(host));
  auto result = run(executor, host, host.floats({1, 2, 3, 4}));
  CHECK(floats(result[0])[0] == 6);
  CHECK(floats(result[1])[3] == 8);
  CHECK(host.live() == 3);
}

TEST_CASE("a result for planned memory is copied when there is no direct entry") {
  PlanBuilder b;
  BufferIndex x = b.input({"2", "3"});
  BufferIndex t = b.temp({"2", "3"});
  BufferIndex y = b.output({"6"});
  b.call("transposed", {{b.view(x, {"2", "3"}), ""}}, t, {"2", "3"});
  b.launch(negate, {t, y}, {}, "6");
  Executor executor(b.finish());
  FakeHost host;
  host.define("transposed", [&](const CallValueList& arguments, std::span<HostTensor> results) {
    FakeTensor* out = host.make(DType::f32, {2, 3});
    std::copy_n(static_cast<const float*>(std::get<CallTensor>(arguments[0].value).data), 6,
                out->as<float>());
    results[0] = out;
  });
  FakeTensor* in = host.make(DType::f32, {2, 3});
  for (int i = 0; i < 6; ++i) in->as<float>()[i] = static_cast<float>(i);
  auto result = run(executor, host, in);
  CHECK(floats(result[0])[5] == -5);
  CHECK(host.live() == 2);
}

TEST_CASE("what a library returns is checked against the plan") {
  PlanBuilder b;
  BufferIndex x = b.input({"2", "1"});
  BufferIndex d = b.adopted({"2", "1"});
  BufferIndex e = b.adopted({"2", "1"});
  b.call("good", {{b.view(x, {"2", "1"}), ""}}, d, {"2", "1"});
  target::ExternCall& call = b.call("bad", {}, e, {"2", "1"});
  call.results.push_back({target::kNoBuffer, DType::f32, {}, {}});
  b.output_of(e, {"2", "1"});
  Executor executor(b.finish());
  FakeHost host;
  host.define("good",
              [&](const CallValueList&, std::span<HostTensor> r) { r[0] = host.make(DType::f32, {2, 1}); });
  FakeTensor* in = host.make(DType::f32, {2, 1});
  auto returning = [&](auto make) {
    host.define("bad", [&host, make](const CallValueList&, std::span<HostTensor> results) {
      results[0] = make(host);
      results[1] = host.make(DType::i64, {1});  // not used by the plan
    });
    std::string text = "no error";
    try {
      for (auto& output : run(executor, host, in)) host.release(output.tensor);
    } catch (const RuntimeError& error) {
      text = error.what();
    }
    CHECK(host.live() == 1);
    return text;
  };
  CHECK(returning([](FakeHost& h) { return h.make(DType::f32, {2, 1}); }) == "no error");
  CHECK(returning([](FakeHost& h) { return h.make(DType::f32, {2, 1}, {1, 5}); }) == "no error");
  CHECK(returning([](FakeHost& h) { return h.make(DType::i64, {2, 1}); }).find("bad returned i64") == 0);
  CHECK(returning([](FakeHost& h) { return h.make(DType::f32, {1, 2}); }).find("bad returned f32[1, 2]") ==
        0);
  CHECK(returning([](FakeHost& h) { return h.make(DType::f32, {2}); }).find("bad returned f32[2]") == 0);
  CHECK(returning([](FakeHost&) { return static_cast<FakeTensor*>(nullptr); }) ==
        "bad returned None as result 0");
  CHECK(returning([](FakeHost& h) {
          FakeTensor* t = h.make(DType::f32, {2, 1});
          t->data = nullptr;
          return t;
        }) == "bad returned a tensor without memory as result 0");
}

TEST_CASE("a result of another floating dtype than the Plan's is converted") {
  PlanBuilder b;
  b.input({"2"});
  BufferIndex d = b.adopted({"2"});
  BufferIndex t = b.temp({"2"});
  BufferIndex y = b.output({"2"});
  b.call("wide", {}, d, {"2"});
  b.call("wide", {}, t, {"2"});
  b.launch(negate, {t, y}, {}, "2");
  b.output_of(d, {"2"});
  Executor executor(b.finish());
  FakeHost host;
  host.define("wide", [&](const CallValueList&, std::span<HostTensor> results) {
    FakeTensor* wide = host.make(DType::f64, {2});
    wide->as<double>()[0] = 0.1;
    wide->as<double>()[1] = -1e300;
    results[0] = wide;
  });
  auto result = run(executor, host, host.floats({1, 2}));
  CHECK(floats(result[0])[0] == -0.1F);
  CHECK(floats(result[1])[1] == -std::numeric_limits<float>::infinity());
  CHECK(host.live() == 3);
}

TEST_CASE("a result with other strides than the Plan's is copied to them") {
  PlanBuilder b;
  BufferIndex x = b.input({"2", "3"});
  BufferIndex d = b.adopted({"2", "3"});
  BufferIndex y = b.output({"2", "3"});
  b.call("columns", {{b.view(x, {"2", "3"}), ""}}, d, {"2", "3"});
  b.launch(negate, {d, y}, {}, "6");
  Executor executor(b.finish());
  FakeHost host;
  host.define("columns", [&](const CallValueList&, std::span<HostTensor> results) {
    FakeTensor* out = host.make(DType::f32, {2, 3}, {1, 2});
    for (int i = 0; i < 6; ++i) out->as<float>()[i] = static_cast<float>(i);
    results[0] = out;
  });
  FakeTensor* in = host.make(DType::f32, {2, 3});
  auto result = run(executor, host, in);
  const float expected[] = {0, -2, -4, -1, -3, -5};
  for (int i = 0; i < 6; ++i) CHECK(floats(result[0])[i] == expected[i]);
  CHECK(host.live() == 2);
}

TEST_CASE("an opaque result passes through unchecked in dtype") {
  PlanBuilder b;
  BufferIndex x = b.input({"2"});
  BufferIndex d = b.adopted({"2"});
  b.call("op", {{b.view(x, {"2"}), ""}}, d, {"2"}).results[0].is_opaque = true;
  b.output_of(d, {"2"});
  Executor executor(b.finish());
  FakeHost host;
  host.define("op",
              [&](const CallValueList&, std::span<HostTensor> r) { r[0] = host.make(DType::f64, {2}); });
  CHECK(run(executor, host, host.floats({1, 2})).size() == 1);
}

TEST_CASE("an exception from the host passes through and leaves nothing behind") {
  PlanBuilder b;
  BufferIndex x = b.input({"2"});
  BufferIndex y = b.output({"2"});
  BufferIndex d = b.adopted({"2"});
  BufferIndex e = b.adopted({"2"});
  b.launch(negate, {x, y}, {}, "2");
  b.call("double", {{b.view(x, {"2"}), ""}}, d, {"2"});
  b.call("throw", {{b.view(d, {"2"}), ""}}, e, {"2"});
  Executor executor(b.finish());
  FakeHost host;
  host.define("double", doubling(host));
  host.define("throw", [&](const CallValueList&, std::span<HostTensor> results) {
    results[0] = host.make(DType::f32, {2});
    throw UserError("from the library");
  });
  FakeTensor* in = host.floats({1, 2});
  CHECK_THROWS_WITH_AS(run(executor, host, in), "from the library", UserError);
  CHECK(host.live() == 1);
}
