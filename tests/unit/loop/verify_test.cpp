// Violations that no text can express. The others are tests/golden/loop/error_*.txt.
#include "loop/verify.h"

#include "base/error.h"
#include "loop/parse.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::loop;

namespace {

constexpr std::string_view kText = R"(kernel k(x: f32[n], out y: f32[n]) given n in [1, 64]
  for i < n
    %0 = load x[i]
    %1 = exp %0
    store y[i], %1
)";

// The first violation after a change to a valid kernel.
template <class Change>
std::string violation(Change change) {
  sym::Context context;
  Kernel kernel = parse_kernel(kText, context);
  REQUIRE(verify(kernel).empty());
  change(kernel);
  std::vector<std::string> errors = verify(kernel);
  return errors.empty() ? "" : errors[0];
}

Block& loop_body(Kernel& kernel) { return std::get<Loop>(kernel.body[0]).body; }

}  // namespace

TEST_CASE("ids and expressions") {
  constexpr const char* kMessage =
      "ids: kernel k has an id out of range, or an expression unset or of another context";
  CHECK_EQ(violation([](Kernel& k) { std::get<Store>(loop_body(k)[2]).value = ValueId(7); }), kMessage);
  CHECK_EQ(violation([](Kernel& k) { std::get<Store>(loop_body(k)[2]).buffer = BufferId(); }), kMessage);
  CHECK_EQ(violation([](Kernel& k) { std::get<Define>(loop_body(k)[0]).value = ValueId(7); }), kMessage);
  CHECK_EQ(violation([](Kernel& k) { std::get<Loop>(k.body[0]).axis = AxisId(1); }), kMessage);
  CHECK_EQ(violation([](Kernel& k) { k.values[ValueId(1)].operands[0] = ValueId(9); }), kMessage);
  CHECK_EQ(violation([](Kernel& k) { k.values[ValueId(0)].index = sym::Expr(); }), kMessage);
  sym::Context other;
  CHECK_EQ(violation([&](Kernel& k) { k.axes[AxisId(0)].extent = other.constant(3); }), kMessage);
  CHECK_EQ(violation([](Kernel& k) { k.values[ValueId(0)].index = k.context->value_symbol(40); }), kMessage);
}

TEST_CASE("names and symbols") {
  CHECK_EQ(violation([](Kernel& k) { k.name = "a b"; }), "names: kernel name 'a b' is not an identifier");
  CHECK_EQ(violation([](Kernel& k) { k.buffers[BufferId(1)].name = "x"; }),
           "names: two buffers are called 'x'");
  CHECK_EQ(violation([](Kernel& k) { k.buffers[BufferId(1)].name = ""; }),
           "names: buffer name '' is not an identifier");
  CHECK_EQ(violation([](Kernel& k) { k.sizes.push_back(k.sizes[0]); }), "sizes: n is declared twice");
  CHECK_EQ(violation([](Kernel& k) { k.sizes[0].symbol = k.axes[AxisId(0)].symbol; }),
           "sizes: i is not a size symbol");
  CHECK_EQ(violation([](Kernel& k) { k.sizes.clear(); }),
           "shapes: the shape of x mentions n, which is not a size of the kernel");
}

TEST_CASE("definitions") {
  CHECK_EQ(violation([](Kernel& k) { loop_body(k).push_back(Define{ValueId(0)}); }),
           "definition: %0 is defined twice, in: %0 = load x[i]");
  CHECK_EQ(violation([](Kernel& k) { k.values[ValueId(0)].kind = ValueKind::reduced; }),
           "definition: %0 is the result of a reduce, in: %0 = reduced");
  CHECK_EQ(violation([](Kernel& k) { std::swap(loop_body(k)[0], loop_body(k)[1]); }),
           "scope: %0 is used before its definition, in: %1 = exp %0");
}

TEST_CASE("one axis is opened once, and other roles have no lanes") {
  CHECK_EQ(violation([](Kernel& k) { k.body.push_back(Loop{AxisId(0), {}}); }),
           "axes: i is opened twice, in: for i < n");
  CHECK_EQ(violation([](Kernel& k) { k.axes[AxisId(0)].lanes = 4; }), "roles: i has 4 lanes, in: for i < n");
}

TEST_CASE("dtypes that the text infers") {
  CHECK_EQ(violation([](Kernel& k) { k.values[ValueId(1)].dtype = DType::f64; }),
           "types: exp over f32 giving f64 is not allowed, in: %1 = exp %0");
  CHECK_EQ(violation([](Kernel& k) { k.values[ValueId(0)].dtype = DType::f64; }),
           "types: a load of f64 from x of f32, in: %0 = load x[i]");
  CHECK_EQ(violation([](Kernel& k) {
             k.values[ValueId(0)] = {
                 .kind = ValueKind::index, .dtype = DType::i32, .index = k.axes[AxisId(0)].symbol};
           }),
           "types: an index value is i32, not i64, in: %0 = index i");
  CHECK_EQ(violation([](Kernel& k) { k.values[ValueId(0)].operands = {ValueId(1)}; }),
           "scope: %1 is used before its definition, in: %0 = load x[i]");
}

TEST_CASE("a reduce has axes and parts, and results of the yields' dtypes") {
  CHECK_EQ(violation([](Kernel& k) { k.body.push_back(Reduce{}); }),
           "reduces: a reduce needs an axis and a part, in:  = reduce  for ");
  CHECK_EQ(violation([](Kernel& k) {
             ValueId result = k.values.push_back({.kind = ValueKind::reduced, .dtype = DType::i64});
             AxisId axis =
                 k.axes.push_back({k.context->symbol("j", sym::SymbolKind::axis), k.context->constant(2)});
             loop_body(k).push_back(Reduce{{axis}, {{ops::ReduceOp::sum, result, {ValueId(1)}}}, {}});
           }),
           "reduces: %2 is not f32, in: %2 = reduce sum for j < 2");
}

TEST_CASE("an access under a mask, a guard or an empty loop proves nothing about bounds") {
  sym::Context context;
  for (const char* text : {R"(kernel k(x: f32[8], out y: f32[8])
  %0 = const bool false
  %1 = const f32 0.0
  %2 = load x[9] if %0 else %1
  store y[0], %2
)",
                           R"(kernel k(x: f32[8], out y: f32[8])
  %0 = const bool false
  if %0
    %1 = load x[9]
    store y[0], %1
)",
                           R"(kernel k(x: f32[0], out y: f32[0])
  for i < 0
    %1 = load x[i]
    store y[i], %1
)"})
    CHECK(verify(parse_kernel(text, context)).empty());
}

TEST_CASE("check_valid names the kernel and the moment") {
  sym::Context context;
  Kernel kernel = parse_kernel(kText, context);
  check_valid(kernel, "after parsing");
  kernel.buffers[BufferId(1)].mode = BufferMode::in;
  CHECK_THROWS_WITH_AS(check_valid(kernel, "after a change"),
                       doctest::Contains("kernel k is not valid after a change: stores: y is only read"),
                       InternalError);
}
