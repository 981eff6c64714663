#pragma once
// A vector of small trivial values that lives on the stack up to N elements. For the scratch lists of the
// builders, which run for every expression built; only what they need (no erase, no insert, not copyable).
#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

namespace kerf::sym {

template <class T, size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  InlineVector() = default;
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;

  void push_back(const T& item) {
    if (size_ < N) {
      inline_[size_++] = item;
      return;
    }
    if (size_ == N) heap_.assign(inline_.begin(), inline_.end());
    heap_.push_back(item);
    ++size_;
  }
  // Keeps the first n elements.
  void truncate(size_t n) {
    if (size_ > N && n <= N) {
      for (size_t i = 0; i < n; ++i) inline_[i] = heap_[i];
      heap_.clear();
    } else if (size_ > N) {
      heap_.resize(n);
    }
    size_ = n;
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return size_ > N ? heap_.data() : inline_.data(); }
  const T* data() const { return size_ > N ? heap_.data() : inline_.data(); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  std::span<const T> span() const { return {data(), size_}; }

 private:
  std::array<T, N> inline_;
  std::vector<T> heap_;
  size_t size_ = 0;
};

}  // namespace kerf::sym
