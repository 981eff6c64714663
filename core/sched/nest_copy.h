#pragma once
// Copies the values of a nest into a kernel under construction, its axes replaced by expressions over the new axes.
#include <functional>
#include <map>
#include <vector>

#include "loop/build.h"
#include "loop/walk.h"
#include "sched/nest.h"
#include "sym/facts.h"

namespace kerf::sched {

class NestCopy {
 public:
  // buffer_of: the new kernel's buffer for one of the nest's kernel.
  NestCopy(loop::KernelBuilder& builder, const Nest& nest, sym::Facts facts,
           std::function<loop::BufferId(loop::BufferId)> buffer_of);

  // An axis of the nest is `to` from here on; new axes are to be known to `facts`.
  void bind(sym::Expr axis, sym::Expr to) { axes_.push_back({axis, to}); }
  void know_extent(sym::Expr axis, sym::Expr extent) { facts_.set_extent(axis, extent); }
  void set(loop::ValueId old, loop::ValueId now) { copied_[old] = now; }

  void copy(const std::vector<loop::ValueId>& values);
  loop::ValueId at(loop::ValueId old) const { return copied_.at(old); }
  sym::Expr place(sym::Expr index) const;

 private:
  loop::ValueId copy_load(const loop::Value& value);
  loop::ValueId copy_apply(const loop::Value& value);

  loop::KernelBuilder& builder_;
  const Nest& nest_;
  sym::Facts facts_;
  std::function<loop::BufferId(loop::BufferId)> buffer_of_;
  std::vector<sym::Substitution> axes_;
  std::map<loop::ValueId, loop::ValueId> copied_;
};

}  // namespace kerf::sched
