#include "axis/canonical.h"

#include <algorithm>
#include <unordered_map>

#include "axis/cut.h"
#include "axis/linear.h"
#include "sym/batch.h"
#include "sym/simplify.h"

namespace kerf::axis {

using sym::Expr;
using sym::Kind;

namespace {

// Accesses with one index, up to a constant: the bytes of all of them.
struct Distinct {
  Expr index;
  int64_t loaded = 0, stored = 0;
  int64_t bytes() const { return loaded + stored; }
  int64_t weight() const { return std::max<int64_t>(bytes(), 1); }
};

class Canonicalizer {
 public:
  Canonicalizer(const Domain& domain, const FreshSymbol& fresh, const CanonicalOptions& options)
      : domain_(domain), fresh_(fresh), options_(options) {}

  Canonical run() {
    begin();
    cut_and_merge();
    bool by_masks = options_.pieces_at_masks && !state_.masks.empty();
    if (options_.max_pieces > 1 && (by_masks || !state_.opaque.empty())) {
      rewrite_distinct(change_);
      find_points();
      if (!state_.points.empty()) place_and_merge();
    }
    order_axes(state_);
    return result();
  }

 private:
  void begin() {
    state_.axes = domain_.axes;
    state_.masks = domain_.masks;
    state_.facts = domain_.facts;
    for (const DomainAxis& axis : state_.axes) {
      state_.facts.set_extent(axis.symbol, axis.extent);
      state_.map.push_back({axis.symbol, axis.symbol});
      next_binding_ = std::max(next_binding_, axis.binding + 1);
    }
    std::vector<Expr> indices;
    for (const DomainAccess& access : domain_.accesses) indices.push_back(access.index);
    sym::simplify_all(indices, state_.facts);
    std::unordered_map<const sym::Node*, size_t> known;
    for (size_t k = 0; k < indices.size(); ++k) {
      const DomainAccess& access = domain_.accesses[k];
      Expr index = without_constant(indices[k]);
      auto [at, is_new] = known.try_emplace(index.node(), distinct_.size());
      if (is_new) distinct_.push_back({index});
      (access.is_store ? distinct_[at->second].stored : distinct_[at->second].loaded) += access.weight;
      distinct_of_.push_back(at->second);
    }
    for (DomainMask& mask : state_.masks) mask.value = sym::simplify(mask.value, state_.facts);
  }

  static Expr without_constant(Expr index) {
    Expr last = index.kind() == Kind::add ? index.operand(index.size() - 1) : index;
    return last.is_constant() ? index - last : index;
  }

  void rewrite_distinct(std::span<const sym::Substitution> change) {
    std::vector<Expr> indices;
    for (const Distinct& access : distinct_) indices.push_back(access.index);
    sym::substitute_all(indices, change);
    sym::simplify_all(indices, state_.facts);
    for (size_t k = 0; k < indices.size(); ++k) distinct_[k].index = indices[k];
  }

  void substitute(std::span<const sym::Substitution> change) {
    auto rewrite = [&](Expr& e) { e = sym::simplify(sym::substitute(e, change), state_.facts); };
    rewrite_distinct(change);
    for (DomainMask& mask : state_.masks) rewrite(mask.value);
    for (DomainGuard& guard : state_.guards) rewrite(guard.value);
    for (sym::Substitution& entry : state_.map) rewrite(entry.to);
  }

  // Merging recombines coordinates, (7*n + i + 3) % 56 to (p + 3) % 56, which may ask for cuts again.
  void cut_and_merge() {
    constexpr int kMaxRounds = 3;
    for (int round = 0; round < kMaxRounds; ++round) {
      bool cut = cut_all(round == 0);
      if (!cut && round > 0) return;
      for (DomainMask& mask : state_.masks) on_digits(mask);
      place_and_merge();
      if (state_.opaque.empty() || round + 1 == kMaxRounds) return;
      rewrite_distinct(change_);
    }
  }

  void place_and_merge() {
    place_accesses();
    size_t own = state_.map.size();
    for (const DomainAxis& axis : state_.axes) state_.map.push_back({axis.symbol, axis.symbol});
    merge_axes(state_, fresh_);
    drop_unused(state_);
    change_.assign(state_.map.begin() + static_cast<std::ptrdiff_t>(own), state_.map.end());
    state_.map.resize(own);
  }

  // --- cuts

  ChainOptions chain_options() const {
    return {options_.allow_guards, options_.avoid_derived ? options_.max_pieces : 1};
  }

  // Where a comparison with a constant changes, as points of its axis.
  std::vector<AxisPoints> mask_points(const DomainMask& mask) const {
    std::optional<Shifted> value = is_axis(mask.value)
                                       ? Shifted{mask.value, 1, mask.value.context().constant(0)}
                                       : shifted_axis(mask.value);
    if (!value || value->scale != 1 || mentions_axis(mask.bound)) return {};
    Expr point = sym::simplify(mask.bound - value->offset, state_.facts);
    if (mask.relation == Relation::equal) return {{value->axis, {point, point + 1}}};
    return {{value->axis, {point}}};
  }

  // Cuts ranges until no cut separates anything new; a cut can uncover terms that another range's cut hid.
  bool cut_all(bool first) {
    constexpr int kMaxRounds = 4;
    int round = 0;
    while (round < kMaxRounds && cut_once(first && round == 0)) ++round;
    return round > 0;
  }

  bool cut_once(bool first) {
    std::vector<CutSet> sets;
    for (const Distinct& access : distinct_)
      for (CutSet& set : cut_sets(access.index, access.weight(), options_.max_pieces > 1))
        sets.push_back(std::move(set));
    std::vector<AxisPoints> soft;
    for (const DomainMask& mask : state_.masks) {
      for (CutSet& set : cut_sets(mask.value, 1, false)) sets.push_back(std::move(set));
      if (!options_.pieces_at_masks)
        for (AxisPoints& points : mask_points(mask)) soft.push_back(std::move(points));
    }
    std::vector<DomainAxis> next;
    std::vector<sym::Substitution> change;
    for (const DomainAxis& axis : state_.axes) {
      std::optional<Cut> cut = cut_axis(axis, first, sets, soft, next);
      if (!cut) {
        next.push_back(axis);
        continue;
      }
      change.push_back({axis.symbol, cut->value});
      if (cut->guarded) state_.guards.push_back({cut->value, axis.extent});
    }
    if (change.empty()) return false;
    state_.axes = std::move(next);
    substitute(change);
    return true;
  }

  // Adds the digits of one axis to `next`, if it is cut.
  std::optional<Cut> cut_axis(const DomainAxis& axis, bool first, const std::vector<CutSet>& sets,
                              const std::vector<AxisPoints>& soft, std::vector<DomainAxis>& next) {
    std::vector<CutSet> own;
    std::vector<Expr> hard, wished;
    for (const CutSet& set : sets)
      if (set.axis == axis.symbol) own.push_back(set);
    for (const AxisPoints& points : soft)
      if (points.axis == axis.symbol) wished.insert(wished.end(), points.points.begin(), points.points.end());
    if (first)
      for (const HardCut& cut : domain_.cuts)
        if (cut.axis == axis.symbol) hard.push_back(cut.point);
    if (own.empty() && hard.empty() && wished.empty()) return std::nullopt;
    auto chain = choose_chain(axis.extent, hard, own, wished, state_.facts, chain_options());
    if (!chain) {
      note_conflict(axis, hard);
      return std::nullopt;
    }
    if (chain->empty()) return std::nullopt;
    Cut cut = cut_range(axis.extent, *chain, state_.facts, fresh_);
    uint32_t binding = axis.binding;
    for (size_t i = 0; i < cut.symbols.size(); ++i) {
      // Digit i > 0 lies below the chain's point at its upper end.
      bool below_hard =
          i > 0 && std::find(hard.begin(), hard.end(), (*chain)[chain->size() - i]) != hard.end();
      if (below_hard) binding = next_binding_++;
      next.push_back({cut.symbols[i], cut.extents[i], binding, axis.keep_unused});
      state_.facts.set_extent(cut.symbols[i], cut.extents[i]);
    }
    return cut;
  }

  void note_conflict(const DomainAxis& axis, const std::vector<Expr>& hard) {
    if (conflict_) return;
    for (Expr a : hard)
      for (Expr b : hard)
        if (!conflict_ && !sym::provably_divides(a, b, state_.facts) &&
            !sym::provably_divides(b, a, state_.facts))
          conflict_.emplace(HardCut{axis.symbol, a}, HardCut{axis.symbol, b});
    // A single point that does not divide the range, without guards.
    if (!conflict_) conflict_.emplace(HardCut{axis.symbol, hard[0]}, HardCut{axis.symbol, axis.extent});
  }

  // 64*h + d < 64*c is h < c.
  void on_digits(DomainMask& mask) const {
    if (mask.relation == Relation::equal) return;
    for (const DomainAxis& axis : state_.axes) {
      std::optional<Expr> stride = stride_over(mask.value, axis.symbol);
      if (!stride || stride->is_constant(0) || stride->is_constant(1)) continue;
      std::optional<Expr> bound = sym::exact_div(mask.bound, *stride, state_.facts);
      if (!bound || !sym::provably_less(stride->context().constant(0), *stride, state_.facts)) continue;
      Expr value = sym::simplify(sym::floor_div(mask.value, *stride), state_.facts);
      if (value.kind() == Kind::floor_div || sym::terms_of(value).size() >= sym::terms_of(mask.value).size())
        continue;
      mask.value = value;
      mask.bound = *bound;
    }
  }

  // --- pieces

  std::vector<AxisInfo> infos() const {
    std::vector<AxisInfo> result;
    for (const DomainAxis& axis : state_.axes) result.push_back({axis.symbol, axis.extent});
    return result;
  }

  // Whether the points make the index affine in every piece.
  bool resolves(Expr index, std::span<const AxisPoints> points, const std::vector<AxisInfo>& axes) const {
    for (const Piece& piece : pieces_at(points, state_.facts))
      if (!linear_form(InPiece(piece, state_.facts)(index), axes)) return false;
    return true;
  }

  // Points for the heaviest accesses first, as long as there are few pieces.
  void find_points() {
    auto most = static_cast<size_t>(options_.max_pieces);
    std::vector<AxisInfo> axes = infos();
    std::vector<size_t> open;
    for (size_t k = 0; k < distinct_.size(); ++k)
      if (!linear_form(distinct_[k].index, axes)) open.push_back(k);
    std::sort(open.begin(), open.end(), [&](size_t a, size_t b) {
      if (distinct_[a].weight() != distinct_[b].weight())
        return distinct_[a].weight() > distinct_[b].weight();
      return sym::compare(distinct_[a].index, distinct_[b].index) < 0;
    });
    for (size_t k : open) {
      std::optional<std::vector<AxisPoints>> wanted = wrap_points(distinct_[k].index, most, state_.facts);
      if (!wanted) continue;
      std::vector<AxisPoints> own;
      if (!add_points(own, *wanted, most, state_.facts)) continue;
      if (resolves(distinct_[k].index, own, axes)) add_points(state_.points, own, most, state_.facts);
    }
    if (options_.pieces_at_masks)
      for (const DomainMask& mask : state_.masks)
        for (const AxisPoints& points : mask_points(mask)) add_mask_points(points);
    sort_points();
  }

  void add_mask_points(AxisPoints points) {
    Expr zero = points.axis.context().constant(0), extent = *state_.facts.extent(points.axis);
    // Points outside the axis cut nothing off; those of unknown place could make an interval of negative length.
    std::erase_if(points.points, [&](Expr p) {
      return !sym::provably_less(zero, p, state_.facts) || !sym::provably_less(p, extent, state_.facts);
    });
    AxisPoints wanted[] = {std::move(points)};
    if (!wanted[0].points.empty())
      add_points(state_.points, wanted, static_cast<size_t>(options_.max_pieces), state_.facts);
  }

  // By the position of their axes, so that the order of accesses does not show.
  void sort_points() {
    std::vector<AxisPoints> sorted;
    for (const DomainAxis& axis : state_.axes)
      for (AxisPoints& points : state_.points)
        if (points.axis == axis.symbol) sorted.push_back(std::move(points));
    state_.points = std::move(sorted);
  }

  // Strides of what is affine, in every piece that matters to it; the rest is opaque.
  void place_accesses() {
    std::vector<AxisInfo> axes = infos();
    state_.rows.clear();
    state_.opaque.clear();
    for (size_t k = 0; k < distinct_.size(); ++k) {
      const Distinct& access = distinct_[k];
      if (std::optional<LinearForm> form = linear_form(access.index, axes)) {
        state_.rows.push_back({std::move(form->coefficients), access.loaded, access.stored});
        continue;
      }
      std::vector<AxisPoints> points;
      for (const AxisPoints& p : state_.points)
        if (sym::mentions(access.index, p.axis)) points.push_back(p);
      std::vector<Piece> pieces = pieces_at(points, state_.facts);
      auto count = static_cast<int64_t>(pieces.size());
      for (const Piece& piece : pieces) {
        Expr index = InPiece(piece, state_.facts)(access.index);
        if (std::optional<LinearForm> form = linear_form(index, axes))
          state_.rows.push_back(
              {std::move(form->coefficients), access.loaded / count, access.stored / count});
        else
          state_.opaque.push_back({k, index});
      }
    }
  }

  // --- result

  Derived derived(size_t access, size_t distinct) const {
    Derived result{access, {}, {}, domain_.accesses[access].weight};
    for (const OpaqueIndex& opaque : state_.opaque)
      if (opaque.access == distinct) collect_terms(opaque.index, result.terms);
    for (size_t k = 0; k < state_.axes.size(); ++k)
      if (std::any_of(result.terms.begin(), result.terms.end(),
                      [&](Expr term) { return sym::mentions(term, state_.axes[k].symbol); }))
        result.axes.push_back(k);
    return result;
  }

  static void collect_terms(Expr expr, std::vector<Expr>& terms) {
    for (size_t i = 0; i < expr.size(); ++i) collect_terms(expr.operand(i), terms);
    bool is_term = (expr.kind() == Kind::floor_div || expr.kind() == Kind::mod) && mentions_axis(expr);
    if (is_term && std::find(terms.begin(), terms.end(), expr) == terms.end()) terms.push_back(expr);
  }

  Canonical result() {
    Canonical result;
    std::vector<bool> is_derived(distinct_.size());
    for (const OpaqueIndex& opaque : state_.opaque) is_derived[opaque.access] = true;
    for (size_t a = 0; a < distinct_of_.size(); ++a)
      if (is_derived[distinct_of_[a]]) result.derived.push_back(derived(a, distinct_of_[a]));
    std::vector<AxisPoints> points;
    for (const DomainAxis& axis : state_.axes)
      for (const AxisPoints& p : state_.points)
        if (p.axis == axis.symbol) points.push_back(p);
    result.pieces = pieces_at(points, state_.facts);
    result.axes = std::move(state_.axes);
    result.map = std::move(state_.map);
    result.guards = std::move(state_.guards);
    result.masks = std::move(state_.masks);
    result.conflict = conflict_;
    result.facts = std::move(state_.facts);
    return result;
  }

  const Domain& domain_;
  const FreshSymbol& fresh_;
  const CanonicalOptions& options_;
  Axes state_;
  std::vector<sym::Substitution> change_;  // of the last merge: axes before it over those after it
  std::vector<Distinct> distinct_;
  std::vector<size_t> distinct_of_;  // each access's
  uint32_t next_binding_ = 0;
  std::optional<std::pair<HardCut, HardCut>> conflict_;
};

}  // namespace

Canonical canonicalize(const Domain& domain, const FreshSymbol& fresh, const CanonicalOptions& options) {
  return Canonicalizer(domain, fresh, options).run();
}

Expr index_in(const Canonical& canonical, const Piece& piece, Expr index) {
  sym::Facts facts = canonical.facts;
  Expr known = sym::simplify(sym::substitute(sym::simplify(index, facts), canonical.map), facts);
  return piece.ranges.empty() ? known : InPiece(piece, facts)(known);
}

MaskIn mask_in(const Canonical& canonical, const Piece& piece, const DomainMask& mask) {
  MaskIn result{std::nullopt, mask};
  result.mask.value = piece.ranges.empty() ? mask.value : InPiece(piece, canonical.facts)(mask.value);
  sym::Facts facts = canonical.facts;
  sym::Expr value = result.mask.value;
  for (const PieceRange& range : piece.ranges) {
    if (!range.begin.is_constant() || !range.end.is_constant()) continue;
    facts.set_range(range.axis, {range.begin.constant(), range.end.constant() - 1});
  }
  bool below = sym::provably_less(value, mask.bound, facts);
  bool reached = sym::provably_less_equal(mask.bound, value, facts);
  bool above = sym::provably_less(mask.bound, value, facts);
  switch (mask.relation) {
    case Relation::less:
      if (below || reached) result.constant = below;
      break;
    case Relation::at_least:
      if (below || reached) result.constant = reached;
      break;
    case Relation::equal:
      if (below || above) result.constant = false;
      if (sym::provably_equal(value, mask.bound, facts)) result.constant = true;
      break;
  }
  return result;
}

}  // namespace kerf::axis
