// Each property is a predicate over a world and a tree; a failing tree is shrunk and printed with its facts.
#include <vector>

#include "random_expr.h"
#include "sym/eval.h"
#include "sym/facts.h"
#include "sym/simplify.h"
#include "sym/text.h"

#include <doctest/doctest.h>

using namespace kerf;
using namespace kerf::sym;
using namespace kerf::sym::property;

namespace {

constexpr int kSamples = 24;

using Property = bool (*)(World&, const Tree&);

std::optional<int64_t> value_of(Expr expr, const Values& values) {
  return evaluate(expr, [&](const Symbol& symbol) { return values.at(symbol.name); });
}

// An expression may leave int64 in another order of evaluation; where both have a value, it is the same.
bool agrees(Expr expr, const Tree& tree, World& world) {
  for (int i = 0; i < kSamples; ++i) {
    Values values = world.sample();
    if (values.empty()) continue;
    std::optional<int64_t> expected = evaluate_tree(tree, values);
    std::optional<int64_t> found = value_of(expr, values);
    if (expected && found && *expected != *found) return false;
  }
  return true;
}

bool build_keeps_value(World& world, const Tree& tree) { return agrees(world.build(tree), tree, world); }

bool simplify_keeps_value(World& world, const Tree& tree) {
  return agrees(simplify(world.build(tree), world.facts), tree, world);
}

bool simplify_is_idempotent(World& world, const Tree& tree) {
  Expr once = simplify(world.build(tree), world.facts);
  return simplify(once, world.facts) == once;
}

bool range_contains_samples(World& world, const Tree& tree) {
  Range range = range_of(world.build(tree), world.facts);
  for (int i = 0; i < kSamples; ++i) {
    Values values = world.sample();
    std::optional<int64_t> value = values.empty() ? std::nullopt : evaluate_tree(tree, values);
    if (value && !range.contains(*value)) return false;
  }
  return true;
}

bool modulus_is_right(World& world, const Tree& tree) {
  Modulus modulus = modulus_of(world.build(tree), world.facts);
  for (int i = 0; i < kSamples; ++i) {
    Values values = world.sample();
    std::optional<int64_t> value = values.empty() ? std::nullopt : evaluate_tree(tree, values);
    if (!value) continue;
    if (modulus.modulus == 0 && *value != modulus.remainder) return false;
    if (modulus.modulus > 0 && mod_int(*value, modulus.modulus) != modulus.remainder) return false;
  }
  return true;
}

bool text_round_trips(World& world, const Tree& tree) {
  Expr expr = world.build(tree);
  return parse_expr(to_text(expr), world.context) == expr;
}

bool rebuilds_elsewhere(World& world, const Tree& tree) {
  Expr expr = world.build(tree);
  Context other;
  Expr copy = rebuild(other, expr);
  return to_text(copy) == to_text(expr) && copy.hash() == expr.hash() && rebuild(world.context, copy) == expr;
}

// Substituting q by p0 + 1 is evaluating with that value.
bool substitutes(World& world, const Tree& tree) {
  Expr q = *world.context.find_symbol("q"), p0 = *world.context.find_symbol("p0");
  Expr expr = world.build(tree);
  Substitution map[] = {{q, p0 + 1}};
  Values probe = {{"q", 7}, {"p0", 6}, {"p1", 1}, {"r", 1}, {"n", 1}, {"m", 1}};
  if (!value_of(expr, probe)) return true;  // a divisor may have become the constant zero
  Expr replaced;
  try {
    replaced = substitute(expr, map);
  } catch (const InternalError&) {
    return true;
  }
  for (int i = 0; i < kSamples; ++i) {
    Values values = world.sample();
    if (values.empty()) continue;
    Values moved = values;
    moved["q"] = values["p0"] + 1;
    std::optional<int64_t> expected = value_of(expr, moved), found = value_of(replaced, values);
    if (expected && found && *expected != *found) return false;
  }
  return true;
}

bool program_equals_evaluate(World& world, const Tree& tree) {
  Expr expr = world.build(tree);
  std::vector<Expr> inputs;
  for (const char* name : {"n", "m", "p0", "p1", "q", "r"})
    inputs.push_back(*world.context.find_symbol(name));
  Expr outputs[] = {expr, inputs[2], expr};
  EvalProgram program(inputs, outputs);
  std::vector<int64_t> registers(program.register_count());
  for (int i = 0; i < kSamples; ++i) {
    Values values = world.sample();
    if (values.empty()) continue;
    std::vector<int64_t> arguments;
    for (Expr input : inputs) arguments.push_back(values.at(input.symbol().name));
    int64_t results[3] = {};
    std::optional<int64_t> expected = value_of(expr, values);
    try {
      program.run(arguments, results, registers);
      if (results[0] != expected || results[2] != expected || results[1] != arguments[2]) return false;
    } catch (const InternalError&) {
      if (expected) return false;
    }
  }
  return true;
}

// What is claimed of a difference holds for samples of it.
bool proofs_hold(World& world, const Tree& tree) {
  if (tree.operands.size() != 2) return true;
  Expr a = world.build(tree.operands[0]), b = world.build(tree.operands[1]);
  bool less = provably_less(a, b, world.facts), less_equal = provably_less_equal(a, b, world.facts);
  bool equal = provably_equal(a, b, world.facts), divides = provably_divides(b, a, world.facts);
  std::optional<Expr> quotient = exact_div(a, b, world.facts);
  if (quotient.has_value() != (divides && !b.is_constant(0))) return false;
  for (int i = 0; i < kSamples; ++i) {
    Values values = world.sample();
    if (values.empty()) continue;
    auto x = evaluate_tree(tree.operands[0], values), y = evaluate_tree(tree.operands[1], values);
    if (!x || !y) continue;
    if ((less && *x >= *y) || (less_equal && *x > *y) || (equal && *x != *y)) return false;
    if (*y == 0 || *y == -1) continue;
    if (divides && *x % *y != 0) return false;
    if (std::optional<int64_t> found = quotient ? value_of(*quotient, values) : std::nullopt)
      if (*found * *y != *x) return false;
  }
  return true;
}

void check_property(const char* name, Property property, int quick) {
  int sampled = 0;
  for (int round = 0; round < rounds(quick); ++round) {
    auto seed = static_cast<uint64_t>(round) + 1;
    World world(seed);
    sampled += world.sample().empty() ? 0 : 1;
    Tree trees[] = {world.random_tree(4), world.random_tree(6), world.random_index(),
                    world.random_extreme_tree(3)};
    for (const Tree& tree : trees) {
      if (property(world, tree)) continue;
      Tree small = shrink(tree, [&](const Tree& candidate) { return !property(world, candidate); });
      Expr built = world.build(small);
      FAIL_CHECK(name << ", seed " << seed << "\n  tree       " << tree_text(small) << "\n  built      "
                      << to_text(built) << "\n  simplified " << to_text(simplify(built, world.facts))
                      << "\n  facts      " << world.facts_text());
      return;
    }
  }
  CHECK(sampled > rounds(quick) / 2);  // facts that no value obeys would make every property hold
}

}  // namespace

TEST_CASE("building keeps the value") { check_property("build", build_keeps_value, 3000); }
TEST_CASE("simplify keeps the value") { check_property("value", simplify_keeps_value, 3000); }
TEST_CASE("simplify is idempotent") { check_property("idempotent", simplify_is_idempotent, 3000); }
TEST_CASE("a range contains every sample") { check_property("range", range_contains_samples, 3000); }
TEST_CASE("a modulus is right") { check_property("modulus", modulus_is_right, 3000); }
TEST_CASE("text parses back to the same handle") { check_property("text", text_round_trips, 3000); }
TEST_CASE("another context builds the same expression") {
  check_property("rebuild", rebuilds_elsewhere, 1500);
}
TEST_CASE("substitution commutes with evaluation") { check_property("substitute", substitutes, 1500); }
TEST_CASE("a program computes what evaluate does") {
  check_property("program", program_equals_evaluate, 1500);
}
TEST_CASE("proofs hold") { check_property("proofs", proofs_hold, 2000); }
