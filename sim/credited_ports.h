#pragma once

#include <cstddef>

#include "base/huge_pages.h"
#include "sim/credits.h"

namespace wafersim::sim {

/// The ports of a router or NIC, each directly followed in memory by the credits of its VCs, in an arena: whoever touches a
/// port touches its credits too.
template <class Port>
class CreditedPorts {
 public:
  CreditedPorts(Arena& arena, unsigned ports, unsigned vcs, Bytes vc_buffer)
      : stride_(static_cast<std::uint32_t>(ceil_div(sizeof(Port) + vcs * sizeof(CreditCounter), kCacheLine) * kCacheLine)),
        ports_(ports),
        first_(static_cast<char*>(arena.allocate(std::size_t{ports} * stride_, kCacheLine))) {
    static_assert(std::is_trivially_destructible_v<Port> && sizeof(Port) % alignof(CreditCounter) == 0);
    for (unsigned port = 0; port < ports; ++port) {
      Port* const at = new (first_ + port * stride_) Port;
      for (unsigned vc = 0; vc < vcs; ++vc) (new (credits_of(*at) + vc) CreditCounter)->set_capacity(vc_buffer);
    }
  }

  unsigned size() const { return ports_; }
  Port& operator[](unsigned port) { return *reinterpret_cast<Port*>(first_ + port * stride_); }
  const Port& operator[](unsigned port) const { return *reinterpret_cast<const Port*>(first_ + port * stride_); }
  static CreditCounter& credit(Port& port, unsigned vc) { return credits_of(port)[vc]; }

  /// A hint that the port and its first credits are needed soon.
  void prefetch(unsigned port) const {
    __builtin_prefetch(first_ + port * stride_);
    __builtin_prefetch(first_ + port * stride_ + kCacheLine);
  }

 private:
  static constexpr std::size_t kCacheLine = 64;
  static CreditCounter* credits_of(Port& port) { return reinterpret_cast<CreditCounter*>(&port + 1); }

  std::uint32_t stride_;  ///< in bytes
  std::uint32_t ports_;
  char* first_;
};

}  // namespace wafersim::sim
