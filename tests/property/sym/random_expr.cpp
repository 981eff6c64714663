#include "random_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "sym/eval.h"
#include "sym/text.h"

namespace kerf::sym::property {

namespace {

__extension__ typedef __int128 Wide;

Wide floor_quotient(Wide a, Wide b) {
  Wide quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

const char* sign_of(Kind kind) {
  switch (kind) {
    case Kind::constant:
    case Kind::symbol: return "";
    case Kind::mul: return "*";
    case Kind::add: return " + ";
    case Kind::floor_div: return " // ";
    case Kind::mod: return " % ";
    case Kind::min: return " min ";
    case Kind::max: return " max ";
  }
  return "";
}

}  // namespace

std::optional<int64_t> evaluate_tree(const Tree& tree, const Values& values) {
  if (tree.kind == Kind::constant) return tree.constant;
  if (tree.kind == Kind::symbol) return values.at(tree.symbol);
  std::optional<int64_t> left = evaluate_tree(tree.operands[0], values);
  std::optional<int64_t> right = evaluate_tree(tree.operands[1], values);
  if (!left || !right) return std::nullopt;
  Wide a = *left, b = *right, result = 0;
  bool divides = tree.kind == Kind::floor_div || tree.kind == Kind::mod;
  if (divides && b == 0) return std::nullopt;
  switch (tree.kind) {
    case Kind::constant:
    case Kind::symbol: break;
    case Kind::mul: result = a * b; break;
    case Kind::add: result = a + b; break;
    case Kind::floor_div: result = floor_quotient(a, b); break;
    case Kind::mod: result = a - b * floor_quotient(a, b); break;
    case Kind::min: result = std::min(a, b); break;
    case Kind::max: result = std::max(a, b); break;
  }
  if (result != static_cast<int64_t>(result)) return std::nullopt;
  return static_cast<int64_t>(result);
}

std::string tree_text(const Tree& tree) {
  if (tree.kind == Kind::constant) return std::to_string(tree.constant);
  if (tree.kind == Kind::symbol) return tree.symbol;
  return fmt::format("({}{}{})", tree_text(tree.operands[0]), sign_of(tree.kind),
                     tree_text(tree.operands[1]));
}

World::World(uint64_t seed) : random_(seed) {
  for (const char* name : {"n", "m"}) {
    Expr size = context.symbol(name, SymbolKind::size);
    sizes_.push_back(size);
    int64_t lo = uniform(0, 3) == 0 ? uniform(-5, 5) : 1;
    facts.set_range(size, {lo, lo + uniform(0, 40)});
    if (uniform(0, 3) == 0) {
      int64_t modulus = uniform(1, 8);
      facts.set_modulus(size, {modulus, uniform(0, modulus - 1)});
    }
  }
  Expr n = sizes_[0], m = sizes_[1];
  const Expr extents[] = {n,
                          n * m,
                          n * 4,
                          m + 3,
                          context.constant(uniform(1, 4)),
                          context.constant(uniform(1, 12) * uniform(1, 12)),
                          context.constant(128),
                          context.constant(uniform(1, 3) * 384)};
  for (const char* name : {"p0", "p1", "q", "r"}) {
    Expr axis = context.symbol(name, SymbolKind::axis);
    axes_.push_back(axis);
    if (uniform(0, 7) == 0) continue;
    facts.set_extent(axis, extents[uniform(0, 7)]);
    if (uniform(0, 7) == 0) facts.set_range(axis, {uniform(0, 2), uniform(3, 50)});
    if (uniform(0, 5) == 0) {
      int64_t modulus = int64_t{1} << uniform(0, 4);
      facts.set_modulus(axis, {modulus, uniform(0, modulus - 1)});
    }
  }
}

Tree World::leaf(bool extreme) {
  constexpr int64_t kEnds[] = {INT64_MIN,
                               INT64_MIN + 1,
                               INT64_MAX,
                               INT64_MAX - 1,
                               int64_t{1} << 62,
                               -(int64_t{1} << 32),
                               int64_t{1} << 31,
                               -1,
                               2};
  switch (uniform(0, 3)) {
    case 0:
      if (extreme) return {Kind::constant, kEnds[uniform(0, 8)], {}, {}};
      return {Kind::constant, uniform(-3, 12), {}, {}};
    case 1: return {Kind::symbol, 0, sizes_[static_cast<size_t>(uniform(0, 1))].symbol().name, {}};
    default: return {Kind::symbol, 0, axes_[static_cast<size_t>(uniform(0, 3))].symbol().name, {}};
  }
}

Tree World::random_divisor(int depth, bool extreme) {
  constexpr int64_t kDivisors[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 64, 128, 384, -1, -3, -8};
  switch (uniform(0, 7)) {
    case 0: return random_tree(std::min(depth, 2), extreme);
    case 1:
    case 2: return {Kind::symbol, 0, sizes_[static_cast<size_t>(uniform(0, 1))].symbol().name, {}};
    case 3: {
      Tree size{Kind::symbol, 0, sizes_[static_cast<size_t>(uniform(0, 1))].symbol().name, {}};
      return {Kind::mul, 0, {}, {Tree{Kind::constant, uniform(1, 6), {}, {}}, size}};
    }
    default: return extreme ? leaf(true) : Tree{Kind::constant, kDivisors[uniform(0, 14)], {}, {}};
  }
}

Tree World::random_tree(int depth, bool extreme) {
  if (depth <= 0 || uniform(0, 9) == 0) return leaf(extreme);
  constexpr Kind kKinds[] = {Kind::add, Kind::add,       Kind::add, Kind::mul, Kind::mul,
                             Kind::mod, Kind::floor_div, Kind::mod, Kind::min, Kind::max};
  Kind kind = kKinds[uniform(0, 9)];
  Tree left = random_tree(depth - 1, extreme);
  bool divides = kind == Kind::floor_div || kind == Kind::mod;
  if (divides) return {kind, 0, {}, {left, random_divisor(depth - 1, extreme)}};
  if (kind == Kind::mul && uniform(0, 2) > 0 && !extreme)
    return {kind, 0, {}, {Tree{Kind::constant, uniform(-8, 24), {}, {}}, left}};
  return {kind, 0, {}, {left, random_tree(depth - 1, extreme)}};
}

Tree World::random_tree(int depth) { return random_tree(depth, false); }
Tree World::random_extreme_tree(int depth) { return random_tree(depth, true); }

Tree World::random_index() {
  auto constant = [](int64_t value) { return Tree{Kind::constant, value, {}, {}}; };
  auto axis = [&] {
    return Tree{Kind::symbol, 0, axes_[static_cast<size_t>(uniform(0, 3))].symbol().name, {}};
  };
  constexpr int64_t kSteps[] = {2, 3, 4, 6, 8, 12, 24, 128};
  Tree base = axis();
  if (uniform(0, 1))
    base = {Kind::add, 0, {}, {{Kind::mul, 0, {}, {constant(kSteps[uniform(0, 7)]), base}}, axis()}};
  if (uniform(0, 3) == 0) base = {Kind::add, 0, {}, {base, constant(uniform(-130, 130))}};
  Tree sum = constant(0);
  for (int64_t term = uniform(1, 4); term > 0; --term) {
    Tree digit = base;
    int64_t step = kSteps[uniform(0, 7)];
    int64_t extent = kSteps[uniform(0, 7)];
    if (uniform(0, 2)) digit = {Kind::floor_div, 0, {}, {digit, constant(step)}};
    if (uniform(0, 2)) digit = {Kind::mod, 0, {}, {digit, constant(extent)}};
    int64_t scale = uniform(0, 1) ? step : uniform(-1, 1) * step * extent;
    sum = {Kind::add, 0, {}, {sum, {Kind::mul, 0, {}, {constant(uniform(0, 2) ? scale : 1), digit}}}};
  }
  if (uniform(0, 2) == 0) sum = {Kind::floor_div, 0, {}, {sum, constant(kSteps[uniform(0, 7)])}};
  if (uniform(0, 2) == 0) sum = {Kind::mod, 0, {}, {sum, constant(kSteps[uniform(0, 7)])}};
  return sum;
}

// Any value when the facts leave none: then nothing is claimed.
int64_t World::draw(Range range, Modulus modulus) {
  int64_t lo = range.lo.value_or(-300), hi = range.hi.value_or(300);
  if (lo > hi) return lo;
  for (int attempt = 0; attempt < 64; ++attempt) {
    int64_t value = uniform(0, 3) == 0 ? (uniform(0, 1) ? lo : hi) : uniform(lo, hi);
    if (mod_int(value - modulus.remainder, modulus.modulus) == 0) return value;
  }
  return lo;
}

// Values of sizes first, then of the axes below their extents. Empty when the draw breaks a fact.
Values World::sample() {
  Values values;
  auto lookup = [&](const Symbol& symbol) { return values.at(symbol.name); };
  auto obeys = [&](Expr symbol) {
    int64_t value = values.at(symbol.symbol().name);
    Modulus modulus = facts.modulus(symbol);
    return facts.range(symbol).contains(value) && mod_int(value - modulus.remainder, modulus.modulus) == 0;
  };
  for (Expr size : sizes_) {
    values[size.symbol().name] = draw(facts.range(size), facts.modulus(size));
    if (!obeys(size)) return {};
  }
  for (Expr axis : axes_) {
    Range range = facts.range(axis);
    if (std::optional<Expr> extent = facts.extent(axis))
      range.hi = std::min(range.hi.value_or(300), *evaluate(*extent, lookup) - 1);
    values[axis.symbol().name] = draw(range, facts.modulus(axis));
    if (!obeys(axis) || !range.contains(values[axis.symbol().name])) return {};
  }
  return values;
}

Expr World::build(const Tree& tree) {
  if (tree.kind == Kind::constant) return context.constant(tree.constant);
  if (tree.kind == Kind::symbol) return *context.find_symbol(tree.symbol);
  Expr a = build(tree.operands[0]), b = build(tree.operands[1]);
  switch (tree.kind) {
    case Kind::constant:
    case Kind::symbol: break;
    case Kind::mul: return mul(a, b);
    case Kind::add: return add(a, b);
    case Kind::floor_div: return b.is_constant(0) ? a : floor_div(a, b);
    case Kind::mod: return b.is_constant(0) ? a : mod(a, b);
    case Kind::min: return min(a, b);
    case Kind::max: return max(a, b);
  }
  return a;
}

std::string World::facts_text() const {
  std::string text;
  auto bound = [](std::optional<int64_t> value) { return value ? std::to_string(*value) : std::string("?"); };
  auto append = [&](Expr symbol) {
    Range range = facts.range(symbol);
    Modulus modulus = facts.modulus(symbol);
    text += fmt::format("{} in [{}, {}]", symbol.symbol().name, bound(range.lo), bound(range.hi));
    if (auto extent = facts.extent(symbol)) text += fmt::format(" < {}", to_text(*extent));
    text += fmt::format(" mod {} = {}; ", modulus.modulus, modulus.remainder);
  };
  for (Expr size : sizes_) append(size);
  for (Expr axis : axes_) append(axis);
  return text;
}

int rounds(int quick) {
  const char* factor = std::getenv("KERF_PROPERTY_FACTOR");
  return quick * (factor ? std::max(1, std::atoi(factor)) : 1);
}

namespace {

// All trees with one node replaced by one of its operands.
void smaller_trees(const Tree& tree, std::vector<Tree>& out) {
  for (const Tree& operand : tree.operands) out.push_back(operand);
  for (size_t i = 0; i < tree.operands.size(); ++i) {
    std::vector<Tree> inner;
    smaller_trees(tree.operands[i], inner);
    for (Tree& operand : inner) {
      out.push_back(tree);
      out.back().operands[i] = std::move(operand);
    }
  }
}

}  // namespace

Tree shrink(Tree tree, const std::function<bool(const Tree&)>& fails) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    std::vector<Tree> candidates;
    smaller_trees(tree, candidates);
    for (const Tree& candidate : candidates) {
      if (!fails(candidate)) continue;
      tree = candidate;
      smaller = true;
      break;
    }
  }
  return tree;
}

}  // namespace kerf::sym::property
