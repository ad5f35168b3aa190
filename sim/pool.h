#pragma once

#include <cstdint>
#include <limits>

#include "base/huge_pages.h"

namespace wafersim::sim {

inline constexpr std::uint32_t kNil = std::numeric_limits<std::uint32_t>::max();

/// Records addressed by index, with a free list threaded through T::next. Indices stay valid while the pool grows;
/// references do not.
template <class T>
class Pool {
 public:
  std::uint32_t take() {
    if (free_ == kNil) {
      items_.emplace_back();
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t index = free_;
    free_ = items_[index].next;
    items_[index] = T{};
    return index;
  }
  void give_back(std::uint32_t index) {
    items_[index].next = free_;
    free_ = index;
  }
  /// Takes all records back.
  void clear() {
    items_.clear();
    free_ = kNil;
  }
  T& operator[](std::uint32_t index) { return items_[index]; }
  const T& operator[](std::uint32_t index) const { return items_[index]; }

 private:
  HugeVector<T> items_;
  std::uint32_t free_ = kNil;
};

}  // namespace wafersim::sim
