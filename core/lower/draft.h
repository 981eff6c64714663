#pragma once
// KernelDraft: one kernel being written. It binds program buffers to kernel buffers, opens loops, and reads elements
// of graph values wherever they are.
//
//   KernelDraft draft(lowering, id, node_name(graph, id));
//   Position position = draft.open_loops(shape);
//   draft.store(buffer, index, draft.read(operand, position));
//   draft.finish();  // closes the loops, appends the launch
#include <optional>
#include <string>
#include <vector>

#include "loop/build.h"
#include "lower/lowering.h"
#include "lower/view.h"

namespace kerf::lower {

// Where `condition` is false nothing is read and `other` stands.
struct Mask {
  loop::ValueId condition;
  loop::ValueId other;
};

class KernelDraft {
 public:
  // `origin` gives the user's source line.
  KernelDraft(Lowering& lowering, graph::NodeId origin, const std::string& name);

  loop::KernelBuilder& builder() { return builder_; }
  Lowering& lowering() { return lowering_; }
  const sym::Facts& facts() const { return facts_; }

  // Serial loops i0, i1, ... over the shape, numbered on from those open; closed by `finish`.
  Position open_loops(std::span<const sym::Expr> shape);

  // One axis r0, r1, ... per extent, in one Reduce.
  Position open_reduce(std::span<const sym::Expr> extents);

  // The element of a graph value at a position, in the value's dtype.
  loop::ValueId read(graph::ValueId value, const Position& position, std::optional<Mask> mask = std::nullopt);

  // The element of a broadcast operand.
  loop::ValueId read_broadcast(graph::ValueId value, const Position& position);

  // An index read from data, checked against its bound, as an expression. `wrap`: negative counts from the end.
  sym::Expr checked_index(loop::ValueId index, sym::Expr bound, bool wrap);

  // False where a dimension that checked indices point into is empty: a failed check gives index 0, which it does
  // not have either. Absent when none of the bounds can be 0.
  std::optional<loop::ValueId> has_elements(std::span<const sym::Expr> bounds);

  // `read` at a position with indices that were checked against these bounds, safe where a check failed.
  loop::ValueId read_checked(graph::ValueId value, const Position& position,
                             std::span<const sym::Expr> bounds);

  // The program buffer as a buffer of this kernel. Asked for again, it must be in the same mode.
  loop::BufferId bind(target::BufferIndex buffer, loop::BufferMode mode);

  // Stores at a position of a value placed at `target`.
  void store(const Strided& target, const Position& position, loop::ValueId value,
             loop::BufferMode mode = loop::BufferMode::out,
             loop::StoreMode store_mode = loop::StoreMode::assign);
  sym::Expr address(const Strided& place, const Position& position) const;

  void finish();

 private:
  loop::ValueId load(const Strided& place, const Position& position, std::optional<Mask> mask);
  loop::ValueId select(std::optional<Mask> mask, loop::ValueId value);

  Lowering& lowering_;
  loop::KernelBuilder builder_;
  sym::Facts facts_;
  std::vector<std::string> sources_;
  std::vector<target::BufferIndex> arguments_;
  std::vector<loop::BufferId> bound_;  // kernel buffer of each argument
  int loops_ = 0;                      // opened
};

// The element at `position` of a window node (window.cpp).
loop::ValueId read_window(KernelDraft& draft, const graph::Node& node, const Position& position,
                          std::optional<Mask> mask);

}  // namespace kerf::lower
