#pragma once
// Typed 32-bit ids: an index into a flat vector that cannot be confused with an index into another.
// `for_id(vector)`-style access goes through operator[] of IdVector.
#include <compare>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <vector>

#include "base/check.h"

namespace kerf {

template <class Tag>
struct Id {
  static constexpr uint32_t kNone = 0xffffffffu;
  uint32_t index = kNone;
  constexpr Id() = default;
  constexpr explicit Id(size_t i) : index(static_cast<uint32_t>(i)) {}
  constexpr bool valid() const { return index != kNone; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

// A vector indexed by one kind of id.
template <class IdType, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(size_t n, const T& value = T()) : items_(n, value) {}
  IdType push_back(T item) {
    items_.push_back(std::move(item));
    return IdType(items_.size() - 1);
  }
  typename std::vector<T>::reference operator[](IdType id) {
    CHECK(id.index < items_.size(), "id {} out of range {}", id.index, items_.size());
    return items_[id.index];
  }
  typename std::vector<T>::const_reference operator[](IdType id) const {
    CHECK(id.index < items_.size(), "id {} out of range {}", id.index, items_.size());
    return items_[id.index];
  }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  IdType end_id() const { return IdType(items_.size()); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  void resize(size_t n, const T& value = T()) { items_.resize(n, value); }
  void reserve(size_t n) { items_.reserve(n); }
  friend bool operator==(const IdVector&, const IdVector&) = default;

 private:
  std::vector<T> items_;
};

}  // namespace kerf

template <class Tag>
struct std::hash<kerf::Id<Tag>> {
  size_t operator()(kerf::Id<Tag> id) const noexcept { return id.index; }
};
