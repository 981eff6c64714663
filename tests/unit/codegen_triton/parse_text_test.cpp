#include "codegen/triton/parse_text.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error.h"
#include "kernel_file.h"

using namespace kerf;
using namespace kerf::triton;
using kerf::testing::kernel_file;

namespace {

// The expression as nested calls, `(+ a (* b c))`.
std::string to_text(const KernelFile& file, ExpressionId id) {
  const Expression& expression = file.expressions[id];
  std::string text = expression.text;
  if (expression.kind == ExpressionKind::call) text = "call";
  if (expression.kind == ExpressionKind::subscript) text = "[]";
  if (expression.kind == ExpressionKind::conditional) text = "if";
  if (expression.operands.empty()) return text;
  for (size_t i = 0; i < expression.operands.size(); ++i) {
    size_t first_keyword = expression.operands.size() - expression.keywords.size();
    std::string keyword = i < first_keyword ? "" : expression.keywords[i - first_keyword] + "=";
    text += " " + keyword + to_text(file, expression.operands[i]);
  }
  return "(" + text + ")";
}

std::string parsed(const std::string& expression) {
  KernelFile file = parse_text(kernel_file("    v = " + expression));
  return to_text(file, file.function().body[0].value);
}

std::string error_of(const std::string& body) {
  try {
    parse_text(kernel_file(body));
  } catch (const ParseError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("operators bind as in Python") {
  CHECK(parsed("a + b * c") == "(+ a (* b c))");
  CHECK(parsed("a // b % c - d") == "(- (% (// a b) c) d)");
  CHECK(parsed("-a ** 2") == "(- (** a 2))");
  CHECK(parsed("a < b & c") == "(< a (& b c))");
  CHECK(parsed("(a < b) & ~c | d") == "(| (& (< a b) (~ c)) d)");
  CHECK(parsed("not a < b and c or d") == "(or (and (not (< a b)) c) d)");
  CHECK(parsed("a if b else c if d else e") == "(if b a (if d c e))");
}

TEST_CASE("calls, attributes and subscripts") {
  CHECK(parsed("tl.load(p + i, mask=m, other=-1e-3)") == "(call (load tl) (+ p i) mask=m other=(- 1e-3))");
  CHECK(parsed("x[:, None].to(tl.float32)") == "(call (to ([] x : None)) (float32 tl))");
  CHECK(parsed("(1, 0, 2)") == "( 1 0 2)");
  CHECK(parsed("f(\n    a,  # comment\n    b,\n    )") == "(call f a b)");
}

TEST_CASE("statements keep their lines") {
  KernelFile file = parse_text(kernel_file(
      "    for t in range(0, 4):\n        a, b = f(t)\n        a += b\n    if a:\n        pass\n    elif b:\n"
      "        return a\n    else:\n        g()"));
  const auto& body = file.function().body;
  REQUIRE(body.size() == 2);
  CHECK(body[0].line == 7);
  CHECK(body[0].body[0].names == std::vector<std::string>{"a", "b"});
  CHECK(body[0].body[1].operation == "+");
  CHECK(body[0].body[1].line == 9);
  REQUIRE(body[1].otherwise.size() == 1);
  CHECK(body[1].otherwise[0].otherwise[0].kind == StatementKind::evaluate);
}

TEST_CASE("what is no kernel text is refused with its place") {
  CHECK(error_of("    v = a +") == "line 7:12: expected an expression, found the end of the line");
  CHECK(error_of("    v = 0 <= a < b") == "line 7:16: expected one comparison (join two by `&`), found '<'");
  CHECK(error_of("    while a:\n        pass").starts_with("line 7:5: expected an assignment"));
  CHECK(error_of("    x[0] = a") == "line 7:1: only names can be assigned");
  CHECK(error_of("    v = \"abc") == "line 7:9: a string without an end");
  CHECK(error_of("    v = (a") == "line 10:1: a bracket is not closed");
  CHECK(error_of("    for t in a:\n    v = 1") == "line 8:5: expected an indented block, found 'v'");
}

TEST_CASE("a file without a kernel, or whose KERNEL lacks something, is refused") {
  CHECK_THROWS_AS(parse_text("import triton\n"), ParseError);
  CHECK_THROWS_AS(parse_text("@triton.jit\ndef k():\n    pass\n"), ParseError);
  CHECK_THROWS_WITH(parse_text("@triton.jit\ndef k():\n    pass\nKERNEL = {\"target\": \"cuda\"}\n"),
                    "line 4:1: KERNEL lacks \"buffers\"");
}
