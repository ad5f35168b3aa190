#pragma once

#include <limits>

#include "base/error.h"
#include "base/units.h"
#include "sim/pool.h"

namespace wafersim::sim {

/// A credit on its way upstream.
struct Credit {
  Cycle at = 0;
  std::uint32_t next = kNil;
  std::uint32_t bytes = 0;
};
using CreditPool = Pool<Credit>;

/// Room in one downstream VC buffer as its upstream end sees it. The downstream end knows at the grant when a credit will
/// be back, so it is entered with its time at once and counts from then on: no event for each credit. The next two credits to
/// arrive are held in place, which is as many as are under way behind a stream of packets with the default buffers; those
/// behind them in the pool.
class CreditCounter {
 public:
  /// Below 4 GiB.
  void set_capacity(Bytes bytes) {
    if (bytes > std::numeric_limits<std::uint32_t>::max()) throw PlanError("router.vc_buffer must be below 4 GiB");
    available_ = static_cast<std::uint32_t>(bytes);
  }

  bool has_room(Bytes bytes, Cycle now, CreditPool& pool) {
    if (available_ >= bytes) return true;
    absorb(now, pool);
    return available_ >= bytes;
  }
  void take(Bytes bytes) { available_ -= static_cast<std::uint32_t>(bytes); }

  /// A credit that arrives at `at`, not before any credit given earlier.
  void give(Bytes bytes, Cycle at, Cycle now, CreditPool& pool) {
    absorb(now, pool);
    const auto amount = static_cast<std::uint32_t>(bytes);
    if (next_at_ == kNever) {
      next_at_ = at;
      next_bytes_ = amount;
    } else if (second_at_ == kNever) {
      second_at_ = at;
      second_bytes_ = amount;
    } else {
      queue(amount, at, pool);
    }
  }

  /// When the next credit known of arrives; kNever when none is on its way. After has_room() was false.
  Cycle next_arrival() const { return next_at_; }

  /// Somebody waits for a credit of which no arrival is known yet.
  void wait() { waiting_ = 1; }
  /// Whether somebody did; nobody does afterwards.
  bool stop_waiting() {
    const bool waited = waiting_ != 0;
    waiting_ = 0;
    return waited;
  }

 private:
  void absorb(Cycle now, CreditPool& pool) {
    while (next_at_ <= now) {
      available_ += next_bytes_;
      next_at_ = second_at_;
      next_bytes_ = second_bytes_;
      second_at_ = kNever;
      if (tail_ != kNobody) [[unlikely]] advance_queue(pool);
    }
  }

  [[gnu::noinline]] void queue(std::uint32_t bytes, Cycle at, CreditPool& pool) {
    const std::uint32_t fresh = pool.take();
    pool[fresh].at = at;
    pool[fresh].bytes = bytes;
    if (tail_ == kNobody) {
      pool[fresh].next = fresh;
    } else {
      pool[fresh].next = pool[tail_].next;
      pool[tail_].next = fresh;
    }
    require_invariant(fresh < kNobody, "too many credits under way");
    tail_ = fresh & kNobody;
  }
  /// Takes the first of the queue in place.
  [[gnu::noinline]] void advance_queue(CreditPool& pool) {
    const std::uint32_t first = pool[tail_].next;
    second_at_ = pool[first].at;
    second_bytes_ = pool[first].bytes;
    if (first == tail_) {
      tail_ = kNobody;
    } else {
      pool[tail_].next = pool[first].next;
    }
    pool.give_back(first);
  }

  Cycle next_at_ = kNever;
  Cycle second_at_ = kNever;
  std::uint32_t available_ = 0;
  std::uint32_t next_bytes_ = 0;
  std::uint32_t second_bytes_ = 0;
  // In half a cache line, so that an output and two virtual channels take two.
  static constexpr std::uint32_t kNobody = kNil >> 1;
  std::uint32_t tail_ : 31 = kNobody;  ///< of the circular list of the others
  std::uint32_t waiting_ : 1 = 0;
};
static_assert(sizeof(CreditCounter) == 32);

}  // namespace wafersim::sim
