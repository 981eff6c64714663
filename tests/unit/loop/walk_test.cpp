#include "loop/walk.h"

#include "loop/parse.h"
#include "loop/print.h"
#include "loop/renumber.h"
#include "sym/text.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::loop;

namespace {

constexpr std::string_view kText = R"(kernel k(x: f32[8, 4], ix: i64[8], out y: f32[8]) given n
  for i < 8 grid
    %0 = load ix[i]
    %3 = reduce sum for j < 4
      %1 = load x[4*%0 + j]
      %2 = neg %1
      yield %2
    %4 = gt %3, %3
    if %4
      store y[%0], %3
)";

std::vector<uint32_t> ids(const std::vector<ValueId>& values) {
  std::vector<uint32_t> result;
  for (ValueId value : values) result.push_back(value.index);
  return result;
}

}  // namespace

TEST_CASE("walks go outer to inner in program order, and close bodies afterwards") {
  sym::Context context;
  Kernel kernel = parse_kernel(kText, context);
  std::string trace;
  auto word = [&](const Stmt& stmt) { return to_text(kernel, stmt).substr(0, 4); };
  walk(
      kernel.body,
      [&](const Stmt& stmt, const Path& path) { trace += fmt::format("{}{} ", path.size(), word(stmt)); },
      [&](const Stmt& stmt, const Path&) {
        if (body_of(stmt)) trace += fmt::format("/{} ", word(stmt));
      });
  CHECK_EQ(trace, "0for  1%0 = 1%3 = 2%1 = 2%2 = /%3 = 1%4 = 1if % 2stor /if % /for  ");
}

TEST_CASE("axes of a path") {
  sym::Context context;
  Kernel kernel = parse_kernel(kText, context);
  size_t deepest = 0;
  walk(kernel.body,
       [&](const Stmt&, const Path& path) { deepest = std::max(deepest, axes_of(path).size()); });
  CHECK_EQ(deepest, 2);
}

TEST_CASE("uses: operands, values in indices, conditions, yields") {
  sym::Context context;
  Kernel kernel = parse_kernel(kText, context);
  const Block& body = *body_of(kernel.body[0]);
  CHECK_EQ(ids(uses_of(kernel, body[0])), std::vector<uint32_t>{});
  CHECK_EQ(ids(uses_of(kernel, body[1])), std::vector<uint32_t>{2});
  CHECK_EQ(ids(defined_by(body[1])), std::vector<uint32_t>{3});
  CHECK_EQ(ids(uses_of(kernel, (*body_of(body[1]))[0])), std::vector<uint32_t>{0});
  CHECK_EQ(ids(uses_of(kernel, body[3])), std::vector<uint32_t>{4});
  CHECK_EQ(ids(uses_of(kernel, (*body_of(body[3]))[0])), std::vector<uint32_t>{0, 3});
  IdVector<ValueId, int> counts = use_counts(kernel);
  CHECK_EQ(std::vector<int>(counts.begin(), counts.end()), std::vector<int>{2, 1, 1, 3, 1});
}

TEST_CASE("rewriting a block replaces, removes and duplicates statements bottom-up") {
  sym::Context context;
  Kernel kernel = parse_kernel(kText, context);
  kernel.body = rewrite_block(std::move(kernel.body), [](Stmt stmt, Block& out) {
    if (auto* guard = std::get_if<Guard>(&stmt)) {
      for (Stmt& inner : guard->body) out.push_back(std::move(inner));
    } else if (std::holds_alternative<Store>(stmt)) {
      out.push_back(stmt);
      out.push_back(stmt);
    } else {
      out.push_back(std::move(stmt));
    }
  });
  std::string text = to_text(kernel);
  CHECK(text.ends_with("    %4 = gt %3, %3\n    store y[%0], %3\n    store y[%0], %3\n"));
}

TEST_CASE("replacing uses reaches operands, stores, conditions, yields and indices") {
  sym::Context context;
  Kernel kernel = parse_kernel(kText, context);
  IdVector<ValueId, ValueId> map(kernel.values.size());
  for (ValueId id(0); id.index < map.size(); ++id.index) map[id] = id;
  ValueId other =
      kernel.values.push_back({.kind = ValueKind::index, .dtype = DType::i64, .index = context.constant(1)});
  map.push_back(other);
  map[ValueId(0)] = other;
  map[ValueId(2)] = ValueId(1);
  replace_uses(kernel, map);
  std::string text = to_text(kernel);
  CHECK(text.find("load x[j + 4*%5]") != std::string::npos);
  CHECK(text.find("store y[%5], %3") != std::string::npos);
  CHECK(text.find("yield %1") != std::string::npos);
}

TEST_CASE("rewriting expressions reaches extents, loads and stores") {
  sym::Context context;
  Kernel kernel = parse_kernel(kText, context);
  int visited = 0;
  rewrite_expressions(kernel, [&](sym::Expr expr) {
    ++visited;
    return expr + 1;
  });
  CHECK_EQ(visited, 5);  // two extents, two loads, one store
  CHECK(to_text(kernel).find("for i < 9 grid") != std::string::npos);
  CHECK(to_text(kernel).find("store y[%0 + 1], %3") != std::string::npos);
}

TEST_CASE("the grid: its chain and its flattened extent") {
  sym::Context context;
  Kernel kernel = parse_kernel(R"(kernel k(out y: f32[n, m]) given n in [1, 9], m
  for i < n grid
    for j < m grid
      for l < 2
)",
                               context);
  CHECK_EQ(grid_loops(kernel, kernel.body[0]).size(), 2);
  CHECK_EQ(sym::to_text(grid_extent(kernel)), "max(m, 0)*n");
  CHECK_EQ(sym::to_text(grid_extent(parse_kernel("kernel k()\n", context))), "1");
}

TEST_CASE("kernels equal but for numbering and names have one canonical text") {
  sym::Context context;
  Kernel a = parse_kernel(kText, context);
  Kernel b = a;
  // Swap two ids everywhere: still the same kernel.
  IdVector<ValueId, ValueId> map(a.values.size());
  for (ValueId id(0); id.index < map.size(); ++id.index) map[id] = id;
  std::swap(map[ValueId(0)], map[ValueId(2)]);
  std::swap(b.values[ValueId(0)], b.values[ValueId(2)]);
  replace_uses(b, map);
  for_each_stmt(b.body, [&](Stmt& stmt) {
    if (auto* define = std::get_if<Define>(&stmt)) define->value = map[define->value];
  });
  b.buffers[BufferId(0)].name = "renamed";
  CHECK_NE(to_text(a), to_text(b));
  CHECK_EQ(canonical_text(a), canonical_text(b));
  b.buffers[BufferId(0)].name = "x";
  CHECK_EQ(to_text(renumber(b)), to_text(a));
}
