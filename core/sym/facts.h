#pragma once
// What is known about symbols: ranges and divisibility, and what follows for expressions.
//
//   Range     inclusive bounds, each absent when unknown. An empty range (lo > hi) means the code is never
//             reached; everything holds there.
//   Modulus   `expr = remainder (mod modulus)`; modulus 0: exactly `remainder`, modulus 1: nothing known.
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "sym/expr.h"

namespace kerf::sym {

struct Range {
  std::optional<int64_t> lo;
  std::optional<int64_t> hi;
  bool contains(int64_t v) const { return (!lo || *lo <= v) && (!hi || v <= *hi); }
  bool is_constant() const { return lo && hi && *lo == *hi; }
  friend bool operator==(const Range&, const Range&) = default;
};

struct Modulus {
  int64_t modulus = 1;
  int64_t remainder = 0;
  friend bool operator==(const Modulus&, const Modulus&) = default;
};

class Facts {
 public:
  void set_range(Expr symbol, Range range) { symbols_[symbol.node()].range = range; }
  // 0 <= symbol < extent, where the extent may itself be an expression over sizes. Kept as an expression, so
  // that `i // n` with i < n is 0 although n has no constant bound.
  void set_extent(Expr symbol, Expr extent);
  void set_modulus(Expr symbol, Modulus modulus) { symbols_[symbol.node()].modulus = modulus; }

  Range range(Expr symbol) const;
  std::optional<Expr> extent(Expr symbol) const;
  Modulus modulus(Expr symbol) const;

 private:
  struct SymbolFacts {
    Range range;
    Expr extent;  // invalid when not set
    Modulus modulus;
  };
  std::unordered_map<const Node*, SymbolFacts> symbols_;
};

// Sound, not tight: every value the expression takes lies inside.
Range range_of(Expr expr, const Facts& facts);
Modulus modulus_of(Expr expr, const Facts& facts);

// True only when it holds for all values that the facts allow.
bool provably_equal(Expr a, Expr b, const Facts& facts);
bool provably_less(Expr a, Expr b, const Facts& facts);        // a < b
bool provably_less_equal(Expr a, Expr b, const Facts& facts);  // a <= b
bool provably_divides(Expr divisor, Expr expr, const Facts& facts);
// expr / divisor when divisor provably divides expr exactly; s1 divides s1*64.
std::optional<Expr> exact_div(Expr expr, Expr divisor, const Facts& facts);

}  // namespace kerf::sym
