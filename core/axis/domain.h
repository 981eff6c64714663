#pragma once
// What canonical axes are computed from: ranges, and everything that is an expression over them.
#include <cstdint>
#include <functional>
#include <vector>

#include "sym/expr.h"
#include "sym/facts.h"

namespace kerf::axis {

struct DomainAxis {
  sym::Expr symbol;
  sym::Expr extent;
  // Axes with different bindings never merge: kept and reduced axes, axes bound by different sets of loops or values.
  uint32_t binding = 0;
  bool keep_unused = false;  // a reduction's axis: its extent counts even when no access uses it
};

struct DomainAccess {
  sym::Expr index;
  int64_t weight = 1;  // bytes moved over the whole domain, each counted once
  bool is_store = false;
};

// A comparison that the computation makes, as a mask: `value < bound`, `value >= bound` or `value == bound`.
enum class Relation : uint8_t { less, at_least, equal };
struct DomainMask {
  sym::Expr value;
  Relation relation = Relation::less;
  sym::Expr bound;
};

// A point where a range must be cut whatever its accesses ask for: the boundary of another nest's range, or between kept and
// reduced ranges. The parts never merge again.
struct HardCut {
  sym::Expr axis;
  sym::Expr point;
};

struct Domain {
  std::vector<DomainAxis> axes;
  std::vector<DomainAccess> accesses;
  std::vector<DomainMask> masks;
  std::vector<HardCut> cuts;
  sym::Facts facts;  // of the sizes; extents of the axes are added
};

// Makes a new axis symbol.
using FreshSymbol = std::function<sym::Expr()>;

}  // namespace kerf::axis
