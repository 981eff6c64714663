#pragma once
// Random expressions for the properties of sym. A Tree is evaluated by its own plain arithmetic, so that the
// builders, too, are judged by something that does not share their code. A World is a context with random
// facts and a way to draw values that obey them.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sym/expr.h"
#include "sym/facts.h"

namespace kerf::sym::property {

using Values = std::map<std::string, int64_t>;

struct Tree {
  Kind kind = Kind::constant;
  int64_t constant = 0;
  std::string symbol;
  std::vector<Tree> operands;
};

// nullopt on overflow of 64 bits or division by zero.
std::optional<int64_t> evaluate_tree(const Tree& tree, const Values& values);
std::string tree_text(const Tree& tree);

class World {
 public:
  explicit World(uint64_t seed);

  Context context;
  Facts facts;

  // Small constants and the divisors that layouts have.
  Tree random_tree(int depth);
  // Constants near the ends of int64.
  Tree random_extreme_tree(int depth);
  // Nested digits of one axis and sums of them, as views of views make them.
  Tree random_index();
  Values sample();
  Expr build(const Tree& tree);
  std::string facts_text() const;
  int64_t uniform(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random_); }

 private:
  Tree leaf(bool extreme);
  Tree random_tree(int depth, bool extreme);
  Tree random_divisor(int depth, bool extreme);
  int64_t draw(Range range, Modulus modulus);

  std::mt19937_64 random_;
  std::vector<Expr> sizes_, axes_;
};

// How often a property is tried: a number for quick runs times KERF_PROPERTY_FACTOR.
int rounds(int quick);

// The smallest tree, by dropping operands, for which the property still fails.
Tree shrink(Tree tree, const std::function<bool(const Tree&)>& fails);

}  // namespace kerf::sym::property
