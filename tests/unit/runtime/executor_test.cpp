#include "runtime/executor.h"

#include <doctest/doctest.h>

#include <thread>

#include "base/error.h"
#include "fake_host.h"
#include "plan_builder.h"

using namespace kerf;
using namespace kerf::runtime;
using namespace kerf::runtime::testing;

namespace {

// out[i] = in[i] + 1 for i in [begin, end) of the grid.
void add_one(void* const* buffers, const int64_t*, int64_t begin, int64_t end, void*, target::KernelError*) {
  const float* in = static_cast<const float*>(buffers[0]);
  float* out = static_cast<float*>(buffers[1]);
  for (int64_t i = begin; i < end; ++i) out[i] = in[i] + 1.0f;
}

// out[i] = in[i] * sizes[0].
void times_size(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end, void*,
                target::KernelError*) {
  const float* in = static_cast<const float*>(buffers[0]);
  float* out = static_cast<float*>(buffers[1]);
  for (int64_t i = begin; i < end; ++i) out[i] = in[i] * static_cast<float>(sizes[0]);
}

void fail_at_seven(void* const*, const int64_t* sizes, int64_t begin, int64_t end, void*,
                   target::KernelError* error) {
  for (int64_t i = begin; i < end; ++i)
    if (i % 10 == 7 && error->code == 0) *error = {target::KernelError::kIndex, i, sizes[0], 3};
}

void divide_by_zero(void* const*, const int64_t*, int64_t, int64_t, void*, target::KernelError* error) {
  error->code = target::KernelError::kDivision;
}

CallInput tensor(FakeTensor* t) { return {t->ref(), 0}; }

std::vector<CallOutput> run(Executor& executor, FakeHost& host, std::vector<CallInput> inputs) {
  return executor.run(host, inputs);
}

std::vector<float> values(const CallOutput& output) {
  auto* t = static_cast<FakeTensor*>(output.tensor);
  int64_t count = 1;
  for (int64_t size : t->shape) count *= size;
  return {t->as<float>(), t->as<float>() + count};
}

std::string message(Executor& executor, FakeHost& host, std::vector<CallInput> inputs) {
  try {
    executor.run(host, inputs);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

// y = (x + 1 + 1) * n with one temporary, n dynamic.
std::shared_ptr<const Plan> dynamic_chain() {
  PlanBuilder b;
  b.size("n", 0, 0, {1, 100});
  BufferIndex x = b.input({"n"});
  BufferIndex t = b.temp({"n"});
  BufferIndex u = b.temp({"n"});
  BufferIndex y = b.output({"n"});
  b.launch(add_one, {x, t}, {}, "n");
  b.launch(add_one, {t, u}, {}, "n");
  b.launch(times_size, {u, y}, {"n"}, "n");
  return b.finish();
}

}  // namespace

TEST_CASE("a chain of kernels with a dynamic size") {
  Executor executor(dynamic_chain());
  FakeHost host;
  for (int round = 0; round < 3; ++round) {
    auto two = run(executor, host, {tensor(host.floats({1, 2}))});
    REQUIRE(two.size() == 1);
    CHECK(two[0].kind == target::ProgramOutput::Kind::tensor);
    CHECK(values(two[0]) == std::vector<float>{6, 8});
    CHECK(executor.peak_bytes() == 128 + 8);
    auto three = run(executor, host, {tensor(host.floats({1, 2, 3}))});
    CHECK(values(three[0]) == std::vector<float>{9, 12, 15});
  }
  CHECK(host.live() == 12);  // inputs and outputs, all held by this test
}

TEST_CASE("more shapes than records are kept") {
  Executor executor(dynamic_chain());
  FakeHost host;
  for (int round = 0; round < 2; ++round)
    for (int n = 1; n <= 100; ++n) {
      auto result = run(executor, host, {tensor(host.floats(std::vector<float>(n, 1.0f)))});
      CHECK(values(result[0]) == std::vector<float>(n, 3.0f * n));
    }
}

TEST_CASE("calls from several threads") {
  Executor executor(dynamic_chain());
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 1; t <= 4; ++t)
    threads.emplace_back([&, t] {
      FakeHost host;
      for (int i = 0; i < 500; ++i) {
        int n = t + i % 7;
        auto result = run(executor, host, {tensor(host.floats(std::vector<float>(n, 1.0f)))});
        if (values(result[0]) != std::vector<float>(n, 3.0f * n)) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("inputs that do not fit are refused by name") {
  Executor executor(dynamic_chain());
  FakeHost host;
  CHECK(message(executor, host, {}) == "called with 0 inputs, but this function was compiled for 1");
  CHECK(message(executor, host, {tensor(host.make(DType::f32, {2, 2}))}) ==
        "input 0 has 2 dimensions, but this function was compiled for 1");
  CHECK(message(executor, host, {tensor(host.make(DType::i64, {2}))}) ==
        "input 0 has dtype int64, but this function was compiled for float32");
  CHECK(message(executor, host, {tensor(host.make(DType::f32, {2}, {3}))}) ==
        "input 0 has strides [3], but this function was compiled for [1]");
  CHECK(message(executor, host, {tensor(host.make(DType::f32, {101}))}) ==
        "size n is 101, but this function was compiled for 1 <= n <= 100");
  CHECK(message(executor, host, {tensor(host.make(DType::f32, {0}))}) ==
        "size n is 0, but this function was compiled for 1 <= n <= 100");
  CallInput null = tensor(host.floats({1, 2}));
  null.tensor.data = nullptr;
  CHECK(message(executor, host, {null}) ==
        "input 0 of shape [2] has no memory (a fake, meta or otherwise empty tensor)");
  CHECK(host.allocations() == 0);
}

TEST_CASE("shapes that follow from a size are checked, and divisibility") {
  PlanBuilder b;
  b.size("n", 0, 0, {}, {4, 2});
  b.input({"n"});
  BufferIndex y = b.input({"2*n", "3"});
  BufferIndex z = b.output({"2*n", "3"});
  b.launch(add_one, {y, z}, {}, "6*n");
  Executor executor(b.finish());
  FakeHost host;
  auto x = tensor(host.make(DType::f32, {2}));
  CHECK(message(executor, host, {x, tensor(host.make(DType::f32, {5, 3}))}) ==
        "input 1 has shape [5, 3], but this function was compiled for [4 (2*n), 3]");
  CHECK(message(executor, host, {tensor(host.make(DType::f32, {4})), x}) ==
        "size n is 4, but this function was compiled for n mod 4 = 2");
  CHECK(message(executor, host, {x, tensor(host.make(DType::f32, {4, 3}))}) == "no error");
}

TEST_CASE("strides of dimensions of size 1 and of empty tensors are free") {
  PlanBuilder b;
  b.size("n", 0, 1);
  BufferIndex x = b.input({"1", "n"});
  BufferIndex y = b.output({"1", "n"});
  b.launch(add_one, {x, y}, {}, "n");
  Executor executor(b.finish());
  FakeHost host;
  CHECK(message(executor, host, {tensor(host.make(DType::f32, {1, 3}, {77, 1}))}) == "no error");
  CHECK(message(executor, host, {tensor(host.make(DType::f32, {1, 1}, {0, 5}))}) == "no error");
  CallInput empty = tensor(host.make(DType::f32, {1, 0}, {9, 9}));
  empty.tensor.data = nullptr;
  auto result = run(executor, host, {empty});
  CHECK(values(result[0]).empty());
  CHECK(message(executor, host, {tensor(host.make(DType::f32, {1, 3}, {3, 2}))}) != "no error");
}

TEST_CASE("inputs that are not used or opaque may be anything; integers give sizes") {
  PlanBuilder b;
  BufferIndex x = b.input({"n"});
  b.input({"5"});
  b.plan().inputs[1].is_used = false;
  b.input({"5"});
  b.plan().inputs[2].is_opaque = true;
  b.integer_input();
  b.size("n", 0, 0);
  b.size("m", 3, -1);
  BufferIndex y = b.output({"n"});
  b.integer_output("m*n + 1");
  b.plan().outputs.push_back({});
  b.launch(times_size, {x, y}, {"m"}, "n");
  Executor executor(b.finish());
  FakeHost host;
  auto result = run(executor, host, {tensor(host.floats({1, 2})), {}, {}, {{}, 10}});
  REQUIRE(result.size() == 3);
  CHECK(values(result[0]) == std::vector<float>{10, 20});
  CHECK(result[1].kind == target::ProgramOutput::Kind::integer);
  CHECK(result[1].integer == 21);
  CHECK(result[2].kind == target::ProgramOutput::Kind::none);
  CHECK(result[2].tensor == nullptr);
}

TEST_CASE("outputs: several views of one buffer, and aliases of inputs") {
  PlanBuilder b;
  BufferIndex x = b.input({"4"});
  BufferIndex y = b.output({"4"});
  b.output_of(y, {"2"}, "2");     // a slice of the first output
  b.output_of(y, {"4"});          // the same again
  b.output_of(x, {"3"}, "1", 0);  // a slice of the input
  b.launch(add_one, {x, y}, {}, "4");
  Executor executor(b.finish());
  FakeHost host;
  FakeTensor* in = host.floats({1, 2, 3, 4});
  auto result = run(executor, host, {tensor(in)});
  CHECK(values(result[0]) == std::vector<float>{2, 3, 4, 5});
  CHECK(values(result[1]) == std::vector<float>{4, 5});
  CHECK(values(result[2]) == std::vector<float>{2, 3, 4, 5});
  CHECK(values(result[3]) == std::vector<float>{2, 3, 4});
  auto* first = static_cast<FakeTensor*>(result[0].tensor);
  CHECK(static_cast<FakeTensor*>(result[1].tensor)->data == first->data + 8);
  CHECK(static_cast<FakeTensor*>(result[3].tensor)->storage == in->storage);
  CHECK(host.allocations() == 1);
  CHECK(host.live() == 5);
}

TEST_CASE("an output smaller than its buffer is a view of flat memory") {
  PlanBuilder b;
  BufferIndex x = b.input({"4"});
  BufferIndex y = b.output({"4"});
  b.plan().outputs[0].view = b.view(y, {"2"}, "1");
  b.launch(add_one, {x, y}, {}, "4");
  Executor executor(b.finish());
  FakeHost host;
  auto result = run(executor, host, {tensor(host.floats({1, 2, 3, 4}))});
  CHECK(values(result[0]) == std::vector<float>{3, 4});
  CHECK(host.live() == 2);
}

TEST_CASE("an output that no step writes still exists") {
  PlanBuilder b;
  b.output({"0", "3"});
  Executor executor(b.finish());
  FakeHost host;
  auto result = run(executor, host, {});
  CHECK(static_cast<FakeTensor*>(result[0].tensor)->shape == std::vector<int64_t>{0, 3});
}

TEST_CASE("a kernel writes into an input") {
  PlanBuilder b;
  BufferIndex x = b.input({"2"});
  b.launch(add_one, {x, x}, {}, "2");
  Executor executor(b.finish());
  FakeHost host;
  FakeTensor* in = host.floats({1, 2});
  CHECK(run(executor, host, {tensor(in)}).empty());
  CHECK(in->as<float>()[0] == 2);
  CHECK(in->as<float>()[1] == 3);
}

TEST_CASE("an index error names kernel, line, index and bound, and leaves nothing behind") {
  PlanBuilder b;
  BufferIndex x = b.input({"20"});
  BufferIndex y = b.output({"20"});
  b.launch(add_one, {x, y}, {}, "20");
  b.launch(fail_at_seven, {y}, {"5"}, "20");
  Executor executor(b.finish());
  FakeHost host;
  std::vector<CallInput> inputs = {tensor(host.make(DType::f32, {20}))};
  for (int round = 0; round < 2; ++round)
    CHECK_THROWS_WITH_AS(executor.run(host, inputs),
                         "index 7 is out of bounds for a dimension of size 5 (in kernel k1, from model.py:3)",
                         IndexError);
  CHECK(host.allocations() == 2);
  CHECK(host.live() == 1);
}

TEST_CASE("an integer division by zero is reported") {
  PlanBuilder b;
  b.launch(divide_by_zero, {}, {}, "1");
  Executor executor(b.finish());
  FakeHost host;
  CHECK_THROWS_WITH_AS(run(executor, host, {}),
                       "integer division or modulo by zero (in kernel k0, from model.py:3)", RuntimeError);
}

TEST_CASE("a kernel that is interpreted") {
  PlanBuilder b;
  BufferIndex x = b.input({"3"});
  BufferIndex y = b.output({"3"});
  b.launch(nullptr, {x, y}, {}, "3");
  target::CpuArtifact& artifact = b.plan().artifacts[0];
  artifact.code = std::make_shared<float>(10.0f);
  artifact.interpret = [](const void* code, void* const* buffers, const int64_t*, int64_t begin, int64_t end,
                          target::KernelError*) {
    const float* in = static_cast<const float*>(buffers[0]);
    for (int64_t i = begin; i < end; ++i)
      static_cast<float*>(buffers[1])[i] = in[i] * *static_cast<const float*>(code);
  };
  Executor executor(b.finish());
  FakeHost host;
  CHECK(values(run(executor, host, {tensor(host.floats({1, 2, 3}))})[0]) == std::vector<float>{10, 20, 30});
}

TEST_CASE("a plan is verified before it runs") {
  FakeHost host;
  auto refused = [](auto&& change) {
    PlanBuilder b;
    b.size("n", 0, 0);
    BufferIndex x = b.input({"n"});
    BufferIndex t = b.temp({"n"});
    BufferIndex y = b.output({"n"});
    b.launch(add_one, {x, t}, {}, "n");
    b.launch(add_one, {t, y}, {}, "n");
    auto plan = std::make_shared<Plan>(*b.finish());
    change(*plan);
    CHECK_THROWS_AS(Executor{plan}, InternalError);
  };
  refused([](Plan& p) { p.buffers[1].last_step = 0; });
  refused([](Plan& p) { std::get<LaunchStep>(p.steps[0]).buffers[1] = 9; });
  refused([](Plan& p) { std::get<LaunchStep>(p.steps[0]).artifact = 2; });
  refused([](Plan& p) { std::get<LaunchStep>(p.steps[0]).grid = {}; });
  refused([](Plan& p) { p.buffers[0].input_index = 1; });
  refused([](Plan& p) { p.buffers[2].output_index = 1; });
  refused([](Plan& p) { p.buffers[2].storage = Storage::arena; });
  refused([](Plan& p) { p.buffers[2].storage = Storage::adopted; });
  refused([](Plan& p) { p.size_sources.clear(); });
  refused([](Plan& p) { p.size_sources[0].dim = 1; });
  refused([](Plan& p) { p.artifacts[0].entry = nullptr; });
  refused([](Plan& p) { p.inputs[0].is_used = false; });
}

TEST_CASE("inputs that nobody else holds are let go after their last use") {
  PlanBuilder b;
  BufferIndex first = b.input({"16384"}), second = b.input({"16384"}), small = b.input({"4"});
  BufferIndex kept = b.input({"16384"}), returned = b.input({"16384"});
  BufferIndex t = b.temp({"16384"}), y = b.output({"16384"});
  b.launch(add_one, {first, t}, {}, "16384");
  b.launch(add_one, {second, y}, {}, "16384");
  b.launch(add_one, {small, t}, {}, "4");
  b.launch(add_one, {first, t}, {}, "16384");
  b.launch(add_one, {kept, t}, {}, "16384");
  b.launch(add_one, {returned, t}, {}, "16384");
  b.output_of(returned, {"2"}, "0", 4);
  Executor executor(b.finish());
  FakeHost host;
  std::vector<CallInput> inputs;
  for (int64_t length : {16384, 16384, 4, 16384, 16384}) {
    inputs.push_back(tensor(host.make(DType::f32, {length})));
    inputs.back().may_drop = inputs.size() != 4;
  }
  auto outputs = run(executor, host, inputs);
  CHECK(host.dropped() == std::vector<size_t>{1, 0});
  CHECK(outputs.size() == 2);
}
