#pragma once
// Groups: which kernels of a Program become one, and on which common axes.
//
// A group has root axes, each outer or inner. An outer axis is kept (never reduced) by every member, so everything with
// the same outer coordinates can be computed together: a value passed from one member to another stays inside one
// iteration of the outer axes. Inner axes are what a reduction folds, or what a row of values runs over. Members are
//   scalar   one value per outer point          (a row's maximum, a rescaled sum)
//   full     a value per outer and inner point   (exp(x - max))
//   reducing folds all inner axes away            (sum of exp)
//   columns  a sum over a few outer axes, kept for the inner ones (16 rows of a bias gradient): a row in memory to which
//            every iteration of those axes adds. They run in order, inside the other outer axes.
// A flexible group has only outer axes and only pointwise members over all of them; the first reducing or broadcasting
// member decides which of its axes become inner (cutting them where needed).
//
// Example, softmax over x[256, 64]: max and sum reduce the inner axis of 64, exp and div are full members.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "axis/linear.h"
#include "loop/program.h"
#include "sched/nest.h"
#include "sched/tuning.h"
#include "sym/facts.h"

namespace kerf::sched {

struct RootAxis {
  sym::Expr symbol;
  sym::Expr extent;
  bool inner = false;
  bool summed = false;  // an outer axis over which columns are summed
};

// How a member came to its group: by a buffer that it shares with the members already there.
enum class Link : uint8_t {
  none,    // the group began with it
  reads,   // it reads what they compute
  writes,  // it computes what they read
  shares,  // it reads what they read
  alike,   // it has their axes, no more (join_alike.h)
};

struct Member {
  size_t step = 0;  // its launch in the program
  const Nest* nest = nullptr;
  std::vector<sym::Substitution> map;    // every axis of the nest over the root axes
  std::vector<sym::Expr> loads, stores;  // indices of nest->loads and nest->stores over the root axes
  bool is_full = false;                  // uses the inner axes (a reducing member does so inside its fold)
  bool sums_columns = false;             // a full member that adds to a row in memory
  bool is_copy = false;                  // computes again what another group computes and stores
  int part = 0;            // which of the groups that were joined because they are alike it came with
  Link link = Link::none;  // for reports, with the buffer
  target::BufferIndex through = target::kNoBuffer;
};

struct Group {
  std::vector<RootAxis> axes;
  std::vector<Member> members;  // in program order
  uint32_t position = 0;        // where in the program's order it runs
  uint32_t next_symbol = 0;
  sym::Facts facts;  // sizes and root axes

  bool is_flexible() const;
  std::vector<axis::AxisInfo> axis_infos() const;
};

// The kernels of one program, grouped. Steps that are not simple nests, and externs, are alone. A cheap member may stand in
// several groups (its value is then computed in each); only the group that `group_of` names writes it to memory.
struct Grouping {
  std::vector<Group> groups;                       // of simple nests; some may be empty
  std::vector<std::optional<size_t>> group_of;     // per step
  std::vector<uint32_t> position;                  // per step without a group: where it runs
  std::vector<std::unique_ptr<const Nest>> nests;  // per step; members point to them

  uint32_t runs_at(size_t step) const {
    return group_of[step] ? groups[*group_of[step]].position : position[step];
  }
};

// How many outer iterations must be left for threads where columns are summed.
struct ColumnLimits {
  int64_t min_steps = tuning::min_parallel_rows;
  int64_t chunk = tuning::column_chunk;          // rows summed in one chain
  int64_t min_chunk = tuning::column_min_chunk;  // where no more divide the number of rows
  int64_t min_elements = tuning::column_elements;
};

Grouping group_kernels(const loop::Program& program, const ColumnLimits& limits = {});

}  // namespace kerf::sched
