#pragma once
// NodeMap<T>: from expressions of one context to T, for memo tables that live during one call. Open
// addressing over the structural hash; nothing is allocated until the first insertion. Never iterated, so
// no order can leak into results. A pointer returned by find() is valid until the next set().
#include <cstddef>
#include <utility>
#include <vector>

#include "sym/expr.h"

namespace kerf::sym {

template <class T>
class NodeMap {
 public:
  const T* find(Expr key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[position_of(key.node())];
    return slot.key ? &slot.value : nullptr;
  }
  void set(Expr key, T value) {
    if (4 * (count_ + 1) > 3 * slots_.size()) grow();
    Slot& slot = slots_[position_of(key.node())];
    if (!slot.key) ++count_;
    slot.key = key.node();
    slot.value = std::move(value);
  }

 private:
  struct Slot {
    const Node* key = nullptr;
    T value{};
  };
  // The slot that holds the key, or the empty one where it belongs.
  size_t position_of(const Node* key) const {
    size_t mask = slots_.size() - 1;
    size_t i = key->hash & mask;
    while (slots_[i].key && slots_[i].key != key) i = (i + 1) & mask;
    return i;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
    old.swap(slots_);
    for (Slot& slot : old)
      if (slot.key) slots_[position_of(slot.key)] = std::move(slot);
  }

  std::vector<Slot> slots_;  // size 0 or a power of two
  size_t count_ = 0;
};

}  // namespace kerf::sym
