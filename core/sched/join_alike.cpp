#include "sched/join_alike.h"

#include <algorithm>
#include <set>

#include "sched/align.h"
#include "sched/profit.h"
#include "sym/simplify.h"

namespace kerf::sched {

using sym::Expr;
using target::BufferIndex;

namespace {

class Joiner {
 public:
  Joiner(const loop::Program& program, const Traffic& traffic, Grouping& grouping,
         const std::vector<bool>& members_only, const AlikeLimits& limits)
      : program_(program),
        traffic_(traffic),
        grouping_(grouping),
        members_only_(members_only),
        limits_(limits) {}

  void run() {
    std::vector<size_t> order;
    for (size_t id = 0; id < grouping_.groups.size(); ++id)
      if (!grouping_.groups[id].members.empty()) order.push_back(id);
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return group(a).position < group(b).position; });
    std::vector<size_t> kept;  // in the order in which they run
    for (size_t id : order)
      if (!join_any(kept, id)) kept.push_back(id);
  }

 private:
  Group& group(size_t id) { return grouping_.groups[id]; }
  const Group& group(size_t id) const { return grouping_.groups[id]; }

  // The nearest before it.
  bool join_any(const std::vector<size_t>& kept, size_t later) {
    const std::optional<uint32_t> ready = ready_after(group(later));
    if (!ready || elements_of(group(later)) > limits_.max_elements) return false;
    for (size_t i = kept.size(); i-- > 0 && group(kept[i]).position >= *ready;)
      if (join(group(kept[i]), group(later))) {
        for (const Member& member : group(later).members)
          if (grouping_.group_of[member.step] == later) grouping_.group_of[member.step] = kept[i];
        group(later).members.clear();
        return true;
      }
    return false;
  }

  // The first place where all that it reads is there. Nothing where the place counts.
  std::optional<uint32_t> ready_after(const Group& g) const {
    uint32_t ready = 0;
    for (const Member& member : g.members)
      for (BufferIndex buffer : traffic_.steps[member.step].reads) {
        if (!traffic_.is_stable(buffer, program_)) return std::nullopt;
        for (size_t writer : traffic_.writers[buffer])
          if (std::ranges::find(g.members, writer, &Member::step) == g.members.end())
            ready = std::max(ready, grouping_.runs_at(writer) + 1);
      }
    return ready;
  }

  static int64_t elements_of(const Group& g) {
    int64_t elements = 1;
    for (const RootAxis& axis : g.axes) elements *= hinted(axis.extent, g.facts);
    return elements;
  }

  bool join(Group& g, const Group& later) const {
    std::optional<std::vector<sym::Substitution>> change = axes_over(g, later);
    if (!change) return false;
    std::optional<Expr> fast = fast_axis(g), later_fast = fast_axis(later);
    if (fast.has_value() != later_fast.has_value()) return false;
    if (fast && sym::substitute(*later_fast, *change) != *fast) return false;
    Group joined = g;
    int part = 0;
    for (const Member& member : g.members) part = std::max(part, member.part + 1);
    for (const Member& old : later.members) {
      Member member = old;
      member.part += part;
      if (member.link == Link::none) member.link = Link::alike;
      for (sym::Substitution& s : member.map) s.to = sym::substitute(s.to, *change);
      place_accesses(member, joined.facts);
      auto at = std::ranges::lower_bound(joined.members, member.step, {}, &Member::step);
      if (at == joined.members.end() || at->step != member.step) {
        joined.members.insert(at, std::move(member));
        continue;
      }
      // Both have it, one of them at least as a copy.
      if (at->loads != member.loads || at->stores != member.stores) return false;
      at->is_copy = at->is_copy && member.is_copy;
    }
    if (static_cast<int64_t>(joined.members.size()) > tuning::max_group_members) return false;
    if (buffers_of(joined) > limits_.max_buffers) return false;
    g = std::move(joined);
    return true;
  }

  // The axes of `later` over those of `g`, where they are the same but for extents of 1.
  std::optional<std::vector<sym::Substitution>> axes_over(const Group& g, const Group& later) const {
    auto is_inner = [](const RootAxis& axis) { return axis.inner; };
    if (std::ranges::any_of(g.axes, is_inner) != std::ranges::any_of(later.axes, is_inner))
      return std::nullopt;
    std::vector<sym::Substitution> change;
    auto next = g.axes.begin();
    auto skip_ones = [&] {
      next = std::find_if(next, g.axes.end(), [](const RootAxis& a) { return !a.extent.is_constant(1); });
    };
    for (const RootAxis& axis : later.axes) {
      if (axis.extent.is_constant(1)) {
        change.push_back({axis.symbol, program_.context->constant(0)});
        continue;
      }
      skip_ones();
      if (next == g.axes.end() || next->inner != axis.inner || next->summed || axis.summed ||
          !sym::provably_equal(next->extent, axis.extent, g.facts))
        return std::nullopt;
      change.push_back({axis.symbol, next++->symbol});
    }
    skip_ones();
    if (next != g.axes.end()) return std::nullopt;
    return change;
  }

  // The axis along which most of what is in memory is contiguous.
  std::optional<Expr> fast_axis(const Group& g) const {
    std::optional<Expr> fastest;
    int most = 0;
    for (const RootAxis& axis : g.axes) {
      int count = 0;
      for_each_place(g, [&](BufferIndex, Expr index) {
        auto stride = axis::stride_over(index, axis.symbol);
        count += !axis.extent.is_constant(1) && stride && stride->is_constant(1);
      });
      if (count > most) fastest = axis.symbol, most = count;
    }
    return fastest;
  }

  int64_t buffers_of(const Group& g) const {
    std::set<BufferIndex> buffers;
    for_each_place(g, [&](BufferIndex buffer, Expr) { buffers.insert(buffer); });
    return static_cast<int64_t>(buffers.size());
  }

  // Reads and writes of memory.
  template <class Visit>
  void for_each_place(const Group& g, Visit visit) const {
    for (const Member& member : g.members) {
      const auto& arguments = std::get<loop::Launch>(program_.steps[member.step]).arguments;
      auto add = [&](loop::BufferId id, Expr index) {
        if (BufferIndex buffer = arguments[id.index]; !members_only_[buffer]) visit(buffer, index);
      };
      for (size_t i = 0; i < member.loads.size(); ++i) add(member.nest->loads[i].buffer, member.loads[i]);
      for (size_t i = 0; i < member.stores.size(); ++i) add(member.nest->stores[i].buffer, member.stores[i]);
    }
  }

  const loop::Program& program_;
  const Traffic& traffic_;
  Grouping& grouping_;
  const std::vector<bool>& members_only_;
  const AlikeLimits& limits_;
};

}  // namespace

void join_alike(const loop::Program& program, const Traffic& traffic, Grouping& grouping,
                const std::vector<bool>& members_only, const AlikeLimits& limits) {
  Joiner(program, traffic, grouping, members_only, limits).run();
}

}  // namespace kerf::sched
