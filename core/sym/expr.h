#pragma once
// Index algebra over mathematical integers: immutable, interned expressions owned by a Context.
//
// Contract
//   * An Expr is one pointer. Two expressions of one Context are equal as canonical forms exactly if the
//     pointers are equal. Mixing contexts is a bug (checked where cheap).
//   * Order is structural (`compare`), never by address: the same computation prints the same text in every
//     run. Symbols order by kind, then by name with numbers compared as numbers (p2 < p10).
//   * Canonical sums: n-ary, sorted, like terms joined, one constant last; each term is an atom, a product,
//   or
//     `constant * product`. Products of sums are multiplied out up to kMaxExpandedTerms terms; a larger one
//     stays a product of sums. So `64*i + j`, never `i*64 + j`.
//   * The builders fold only what is always true (over all integers; divisor non-zero). What needs ranges or
//     divisibility is `simplify(expr, facts)` (simplify.h).
//   * `floor_div` rounds towards minus infinity, `mod` has the sign of the divisor; both as in Python.
//     floor_div(x, 0) and mod(x, 0) cannot be built from constants (CHECK).
//   * Arithmetic on constants is overflow-checked. When a fold would overflow, it is not done and the
//     expression stays as written.
// Does not know axes, buffers or shapes; see docs/sym.md.
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace kerf::sym {

enum class Kind : uint8_t { constant, symbol, mul, add, floor_div, mod, min, max };

// What a symbol stands for. `value` symbols are named "%12" and stand for the integer loop value of that id.
enum class SymbolKind : uint8_t { size, axis, value };

class Context;
class Expr;

struct Symbol {
  std::string name;
  SymbolKind kind;
  uint32_t id;     // dense per Context
  uint32_t value;  // for SymbolKind::value, the loop ValueId; else 0
};

struct Node {
  Kind kind;
  int64_t constant = 0;            // Kind::constant
  const Symbol* symbol = nullptr;  // Kind::symbol
  const Node* const* operands = nullptr;
  uint32_t operand_count = 0;
  uint64_t hash = 0;  // structural, equal in every run
  Context* context = nullptr;
  const Symbol* lead = nullptr;  // the first symbol met in operand order, null when there is none
  uint64_t symbol_mask = 0;      // bit id % 64 of every symbol mentioned
  bool as_written = false;       // a product that could not be folded; an atom (products.h)
};

class Expr {
 public:
  Expr() = default;
  explicit Expr(const Node* node) : node_(node) {}

  bool valid() const { return node_ != nullptr; }
  Kind kind() const { return node_->kind; }
  bool is_constant() const { return node_ && node_->kind == Kind::constant; }
  bool is_constant(int64_t v) const { return is_constant() && node_->constant == v; }
  bool is_symbol() const { return node_ && node_->kind == Kind::symbol; }
  int64_t constant() const {
    CHECK(is_constant(), "not a constant");
    return node_->constant;
  }
  const Symbol& symbol() const {
    CHECK(is_symbol(), "not a symbol");
    return *node_->symbol;
  }
  size_t size() const { return node_->operand_count; }
  Expr operand(size_t i) const { return Expr(node_->operands[i]); }
  uint64_t hash() const { return node_->hash; }
  Context& context() const { return *node_->context; }
  const Node* node() const { return node_; }
  friend bool operator==(Expr a, Expr b) { return a.node_ == b.node_; }

 private:
  const Node* node_ = nullptr;
};

// Two sums are multiplied out when that makes at most so many terms.
inline constexpr size_t kMaxExpandedTerms = 64;

// Total structural order (docs/sym.md): by leading symbol, then symbols before products before quotients
// before remainders, long strides first; constants last.
std::strong_ordering compare(Expr a, Expr b);
struct Less {
  bool operator()(Expr a, Expr b) const { return compare(a, b) < 0; }
};

// Owns all expressions of one compilation. Not copyable, not thread-safe: one thread at a time.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Expr constant(int64_t value);
  Expr symbol(std::string_view name, SymbolKind kind);  // the same name must keep its kind (CHECK)
  Expr value_symbol(uint32_t value_id);                 // "%<id>"
  std::optional<Expr> find_symbol(std::string_view name) const;

  // Interns a node whose operands are already canonical. For builders and rules inside sym only.
  Expr intern(Kind kind, std::span<const Expr> operands);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Builders. All operands of one call belong to one Context.
Expr add(Expr a, Expr b);
Expr add(Context& context, std::span<const Expr> terms);
Expr sub(Expr a, Expr b);
Expr mul(Expr a, Expr b);
Expr mul(Context& context, std::span<const Expr> factors);
Expr neg(Expr a);
Expr floor_div(Expr a, Expr b);
Expr mod(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr ceil_div(Expr a, Expr b);  // floor_div(a + b - 1, b)
inline Expr operator+(Expr a, Expr b) { return add(a, b); }
inline Expr operator-(Expr a, Expr b) { return sub(a, b); }
inline Expr operator*(Expr a, Expr b) { return mul(a, b); }
Expr operator+(Expr a, int64_t b);
Expr operator-(Expr a, int64_t b);
Expr operator*(Expr a, int64_t b);
Expr floor_div(Expr a, int64_t b);
Expr mod(Expr a, int64_t b);

// The product of a shape; 1 for an empty one.
Expr product(Context& context, std::span<const Expr> factors);

// A term of a canonical sum, as coefficient and rest: 64*i -> (64, i); 7 -> (7, 1).
struct Term {
  int64_t coefficient;
  Expr rest;
};
std::vector<Term> terms_of(Expr sum);

// expr = coefficient * symbol + rest, where rest does not mention symbol; nullopt if not affine in it
// (symbol inside floor_div, mod, min, max or multiplied by itself). The coefficient may mention others.
struct Affine {
  Expr coefficient;
  Expr rest;
};
std::optional<Affine> affine_in(Expr expr, Expr symbol);

bool mentions(Expr expr, Expr symbol);
void collect_symbols(Expr expr, std::vector<Expr>& out);  // each once, in structural order of first meeting

// Replaces symbols; rebuilt through the builders, so the result is canonical.
struct Substitution {
  Expr from;  // a symbol
  Expr to;
};
Expr substitute(Expr expr, std::span<const Substitution> map);

// The same expression in another context; symbols are matched by name.
Expr rebuild(Context& target, Expr expr);

}  // namespace kerf::sym
