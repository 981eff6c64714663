#include "axis/cut.h"

#include <algorithm>
#include <numeric>

#include "axis/linear.h"
#include "sym/simplify.h"

namespace kerf::axis {

using sym::Expr;
using sym::Kind;

namespace {

struct Collector {
  int64_t weight;
  bool offsets;
  std::vector<CutSet> sets;

  void add(Expr axis, Expr point) {
    if (mentions_axis(point)) return;  // a point that varies with another axis is no cut
    auto set = std::find_if(sets.begin(), sets.end(), [&](const CutSet& s) { return s.axis == axis; });
    if (set == sets.end()) set = sets.insert(sets.end(), {axis, {}, weight});
    auto at = std::lower_bound(set->points.begin(), set->points.end(), point, sym::Less());
    if (at == set->points.end() || !(*at == point)) set->points.insert(at, point);
  }

  // A term whose dividend is +-p + c, over a period. A digit of two values wraps as an affine one: cut at half the period.
  void add_offset(Expr dividend, Expr period) {
    std::optional<Shifted> shifted = shifted_axis(dividend);
    if (!shifted || !(shifted->scale == 1 || shifted->scale == -1)) return;
    if (!shifted->offset.is_constant() || !period.is_constant()) {
      if (offsets) add(shifted->axis, period);
      return;
    }
    int64_t c = shifted->offset.constant(), n = period.constant();
    int64_t step = std::gcd(shifted->scale == 1 ? c : c + 1, n);
    bool halves = step > 0 && n == 2 * step;
    if (offsets || halves) add(shifted->axis, period);
    if (halves) add(shifted->axis, period.context().constant(step));
  }

  void collect(Expr expr) {
    if (expr.kind() == Kind::floor_div || expr.kind() == Kind::mod) {
      Expr base = expr.operand(0), divisor = expr.operand(1);
      if (is_axis(base)) {
        add(base, divisor);
        return;
      }
      if (expr.kind() == Kind::mod && base.kind() == Kind::floor_div && is_axis(base.operand(0))) {
        add(base.operand(0), base.operand(1));
        add(base.operand(0), base.operand(1) * divisor);
        return;
      }
      add_offset(base, divisor);
      if (offsets && expr.kind() == Kind::mod && base.kind() == Kind::floor_div)
        add_offset(base.operand(0), base.operand(1) * divisor);
    }
    for (size_t i = 0; i < expr.size(); ++i) collect(expr.operand(i));
  }
};

// Distinct sets with their weights added, heaviest first, ties by structural order.
std::vector<CutSet> distinct(std::span<const CutSet> sets) {
  std::vector<CutSet> result;
  for (const CutSet& set : sets) {
    auto same =
        std::find_if(result.begin(), result.end(), [&](const CutSet& r) { return r.points == set.points; });
    if (same == result.end()) {
      result.push_back(set);
    } else {
      same->weight += set.weight;
    }
  }
  std::sort(result.begin(), result.end(), [](const CutSet& a, const CutSet& b) {
    if (a.weight != b.weight) return a.weight > b.weight;
    return std::lexicographical_compare(a.points.begin(), a.points.end(), b.points.begin(), b.points.end(),
                                        sym::Less());
  });
  return result;
}

bool is_ordered(Expr a, Expr b, const sym::Facts& facts) {
  return a == b || sym::provably_divides(a, b, facts) || sym::provably_divides(b, a, facts);
}

bool fits(std::span<const Expr> points, std::span<const Expr> others, const sym::Facts& facts) {
  for (Expr p : points)
    for (Expr o : others)
      if (!is_ordered(p, o, facts)) return false;
  return true;
}

// The heaviest subset of sets that fit pairwise. Sets come heaviest first and each is tried before it is left out, so
// among equals the structurally first wins.
class Search {
 public:
  Search(std::span<const CutSet> sets, const sym::Facts& facts) : sets_(sets), fit_(sets.size()) {
    for (size_t i = 0; i < sets.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        if (axis::fits(sets[i].points, sets[k].points, facts)) fit_[i] |= uint64_t{1} << k;
    for (const CutSet& set : sets) rest_ += set.weight;
  }
  uint64_t run() {
    visit(0, 0, 0, rest_);
    return best_;
  }

 private:
  void visit(size_t next, uint64_t taken, int64_t weight, int64_t rest) {
    if (weight > best_weight_) best_ = taken, best_weight_ = weight;
    if (next == sets_.size() || weight + rest <= best_weight_) return;
    rest -= sets_[next].weight;
    if ((taken & ~fit_[next]) == 0)
      visit(next + 1, taken | uint64_t{1} << next, weight + sets_[next].weight, rest);
    visit(next + 1, taken, weight, rest);
  }

  std::span<const CutSet> sets_;
  std::vector<uint64_t> fit_;  // bit k of [i], k < i: sets i and k have a common chain
  uint64_t best_ = 0;
  int64_t best_weight_ = 0, rest_ = 0;
};

class Chooser {
 public:
  Chooser(Expr extent, const sym::Facts& facts, const ChainOptions& options)
      : extent_(extent), facts_(facts), options_(options) {}

  // The sets that can be taken at all, without points that cut nothing off.
  std::vector<CutSet> usable(std::span<const CutSet> sets) const {
    std::vector<CutSet> result;
    for (CutSet set : sets) {
      std::erase_if(set.points, [&](Expr p) { return cuts_nothing(p); });
      bool possible = !set.points.empty() && axis::fits(set.points, set.points, facts_) &&
                      std::all_of(set.points.begin(), set.points.end(), [&](Expr p) { return may_cut(p); });
      if (possible) result.push_back(std::move(set));
    }
    return result;
  }
  bool cuts_nothing(Expr point) const {
    return point.is_constant(1) || sym::provably_less_equal(extent_, point, facts_);
  }
  bool may_cut(Expr point) const {
    if (point.is_constant() && point.constant() <= 0) return false;
    return options_.allow_guard || sym::provably_divides(point, extent_, facts_);
  }

  bool fits(std::span<const Expr> points) const { return axis::fits(points, chain_, facts_); }
  void take(std::span<const Expr> points) {
    for (Expr point : points) {
      if (std::find(chain_.begin(), chain_.end(), point) != chain_.end()) continue;
      auto at = std::find_if(chain_.begin(), chain_.end(),
                             [&](Expr c) { return sym::provably_divides(point, c, facts_); });
      chain_.insert(at, point);
    }
  }

  void take_best(std::vector<CutSet> sets) {
    std::erase_if(sets, [&](const CutSet& set) { return !fits(set.points); });
    constexpr size_t kMaxExact = 12;
    if (sets.size() <= kMaxExact) {
      uint64_t taken = Search(sets, facts_).run();
      for (size_t i = 0; i < sets.size(); ++i)
        if (taken >> i & 1) take(sets[i].points);
      return;
    }
    for (const CutSet& set : sets)
      if (fits(set.points)) take(set.points);
  }

  // All constant points of the sets, those that do not divide one another replaced by their least common multiple, if few
  // pieces of that digit make every term affine. 6 and 4: a digit of 12 in the pieces [0,4) [4,6) [6,8) [8,12).
  bool take_multiple(const std::vector<CutSet>& sets) {
    if (options_.max_pieces <= 1 || !chain_.empty()) return false;
    std::vector<int64_t> points;
    for (const CutSet& set : sets)
      for (Expr p : set.points) {
        if (!p.is_constant() || p.constant() <= 1) return false;
        points.push_back(p.constant());
      }
    std::vector<int64_t> loose;
    int64_t multiple = 1;
    for (int64_t p : points) {
      bool is_loose =
          std::any_of(points.begin(), points.end(), [&](int64_t q) { return p % q != 0 && q % p != 0; });
      if (!is_loose) continue;
      loose.push_back(p);
      constexpr int64_t kLargest = 4096;
      multiple = std::lcm(multiple, p);
      if (multiple > kLargest) return false;
    }
    sym::Context& context = extent_.context();
    std::vector<Expr> chosen{context.constant(multiple)};
    std::vector<int64_t> breaks;
    for (int64_t p : loose)
      for (int64_t at = p; at < multiple; at += p) breaks.push_back(at);
    std::sort(breaks.begin(), breaks.end());
    breaks.erase(std::unique(breaks.begin(), breaks.end()), breaks.end());
    if (breaks.size() + 1 > static_cast<size_t>(options_.max_pieces)) return false;
    for (int64_t p : points)
      if (std::find(loose.begin(), loose.end(), p) == loose.end()) chosen.push_back(context.constant(p));
    if (!axis::fits(chosen, chosen, facts_)) return false;
    if (!cuts_nothing(chosen[0]) && !may_cut(chosen[0])) return false;
    std::erase_if(chosen, [&](Expr p) { return cuts_nothing(p); });
    take(chosen);
    return true;
  }

  // Points of comparisons. One that the top digit's stride divides is decided by that digit as it is; the others are worth
  // cuts only together, or some mask would stay and loops be short for nothing.
  void take_all_or_none(std::span<const Expr> points) {
    std::vector<Expr> wanted;
    for (Expr p : points) {
      if (cuts_nothing(p) || (!chain_.empty() && sym::provably_divides(chain_.back(), p, facts_))) continue;
      if (p.is_constant() && p.constant() <= 0) continue;
      if (!sym::provably_divides(p, extent_, facts_)) return;
      wanted.push_back(p);
    }
    if (fits(wanted) && axis::fits(wanted, wanted, facts_)) take(wanted);
  }

  const std::vector<Expr>& chain() const { return chain_; }

 private:
  Expr extent_;
  const sym::Facts& facts_;
  const ChainOptions& options_;
  std::vector<Expr> chain_;
};

}  // namespace

std::vector<CutSet> cut_sets(Expr expr, int64_t weight, bool offsets) {
  Collector collector{weight, offsets, {}};
  collector.collect(expr);
  return std::move(collector.sets);
}

std::optional<std::vector<Expr>> choose_chain(Expr extent, std::span<const Expr> hard,
                                              std::span<const CutSet> sets, std::span<const Expr> soft,
                                              const sym::Facts& facts, const ChainOptions& options) {
  Chooser chooser(extent, facts, options);
  for (Expr point : hard) {
    if (chooser.cuts_nothing(point)) continue;
    if (!chooser.may_cut(point) || !chooser.fits({&point, 1})) return std::nullopt;
    chooser.take({&point, 1});
  }
  std::vector<CutSet> wanted = distinct(chooser.usable(sets));
  bool all_fit = true;
  for (const CutSet& a : wanted)
    for (const CutSet& b : wanted) all_fit = all_fit && fits(a.points, b.points, facts);
  if (all_fit || !chooser.take_multiple(wanted)) chooser.take_best(std::move(wanted));
  chooser.take_all_or_none(soft);
  return chooser.chain();
}

Cut cut_range(Expr extent, std::span<const Expr> chain, const sym::Facts& facts, const FreshSymbol& fresh) {
  Cut cut;
  sym::Context& context = extent.context();
  std::optional<Expr> top = sym::exact_div(extent, chain.back(), facts);
  cut.guarded = !top;
  cut.extents.push_back(top ? *top : sym::simplify(sym::ceil_div(extent, chain.back()), facts));
  for (size_t i = chain.size(); i-- > 0;) {
    Expr below = i == 0 ? context.constant(1) : chain[i - 1];
    std::optional<Expr> digits = sym::exact_div(chain[i], below, facts);
    CHECK(digits, "chain without exact quotient");
    cut.extents.push_back(*digits);
  }
  cut.value = context.constant(0);
  for (size_t i = 0; i < cut.extents.size(); ++i) {
    cut.symbols.push_back(fresh());
    Expr stride = i + 1 == cut.extents.size() ? context.constant(1) : chain[chain.size() - 1 - i];
    cut.value = cut.value + cut.symbols.back() * stride;
  }
  return cut;
}

}  // namespace kerf::axis
