#include "sched/reasons.h"

#include <fmt/format.h>

#include <algorithm>

namespace kerf::sched {

namespace {

using target::BufferIndex;

class Reasons {
 public:
  Reasons(const loop::Program& program, const Group& group, const std::vector<bool>& members_only)
      : program_(program), group_(group), members_only_(members_only) {}

  std::string of(const Member& member) const {
    std::string why = group_.members.size() == 1 ? "alone" : by_link(member);
    if (member.is_copy) why += "; computed again, cheaper than reading it";
    return why;
  }

 private:
  std::string by_link(const Member& member) const {
    const BufferIndex buffer = member.through;
    switch (member.link) {
      case Link::none: return "the first of the group";
      case Link::reads: return fmt::format("reads {}, {}", name_of(writer(buffer)), travels(buffer));
      case Link::writes: return fmt::format("feeds {}, {}", name_of(reader(member)), travels(buffer));
      case Link::alike: return "has the axes of the group";
      case Link::shares: return fmt::format("reads {} too", program_.buffers[buffer].name);
    }
    UNREACHABLE("link {}", static_cast<int>(member.link));
  }

  std::string_view travels(BufferIndex buffer) const {
    return members_only_[buffer] ? "never in memory" : "also stored";
  }

  const loop::Launch& launch(const Member& member) const {
    return std::get<loop::Launch>(program_.steps[member.step]);
  }

  std::string name_of(const Member* member) const {
    return member ? launch(*member).kernel.name : std::string("a member");
  }

  const Member* writer(BufferIndex buffer) const {
    auto stores = [&](const Member& m, const loop::Store& store) {
      return launch(m).arguments[store.buffer.index] == buffer;
    };
    for (const Member& member : group_.members)
      for (const loop::Store& store : member.nest->stores)
        if (stores(member, store)) return &member;
    return nullptr;
  }

  // The first member after `producer` that reads the buffer which links it.
  const Member* reader(const Member& producer) const {
    for (const Member& member : group_.members)
      if (member.step > producer.step)
        for (const NestLoad& load : member.nest->loads)
          if (launch(member).arguments[load.buffer.index] == producer.through) return &member;
    return nullptr;
  }

  const loop::Program& program_;
  const Group& group_;
  const std::vector<bool>& members_only_;
};

}  // namespace

std::vector<loop::Merged> reasons_of(const loop::Program& program, const Group& group,
                                     const std::vector<bool>& members_only) {
  Reasons reasons(program, group, members_only);
  std::vector<loop::Merged> merged;
  for (const Member& member : group.members)
    merged.push_back({member.nest->kernel->name, member.nest->kernel->sources, reasons.of(member)});
  return merged;
}

}  // namespace kerf::sched
