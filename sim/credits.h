#pragma once

#include <limits>
#include <utility>

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
/// be back, so it is entered with its time at once and counts from then on: no event for each credit. The next credit to
/// arrive is held in place, those behind it in the pool: rarely more than one is under way.
class CreditCounter {
 public:
  /// Below 4 GiB.
  void set_capacity(Bytes bytes) {
    if (bytes > std::numeric_limits<std::uint32_t>::max()) throw PlanError("router.vc_buffer must be below 4 GiB");
    available_ = static_cast<std::uint32_t>(bytes);
  }

  bool has_room(Bytes bytes, Cycle now, CreditPool& pool) {
    if (next_at_ <= now) absorb(now, pool);
    return available_ >= bytes;
  }
  void take(Bytes bytes) { available_ -= static_cast<std::uint32_t>(bytes); }

  /// A credit that arrives at `at`, not before any credit given earlier.
  void give(Bytes bytes, Cycle at, Cycle now, CreditPool& pool) {
    if (next_at_ <= now) absorb(now, pool);
    if (next_at_ == kNever) {
      next_at_ = at;
      next_bytes_ = static_cast<std::uint32_t>(bytes);
      return;
    }
    const std::uint32_t fresh = pool.take();
    pool[fresh].at = at;
    pool[fresh].bytes = static_cast<std::uint32_t>(bytes);
    if (head_ == kNil) {
      head_ = fresh;
    } else {
      pool[tail_].next = fresh;
    }
    tail_ = fresh;
  }

  /// When the next credit known of arrives; kNever when none is on its way.
  Cycle next_arrival() const { return next_at_; }

  /// Somebody waits for a credit of which no arrival is known yet.
  void wait() { waiting_ = true; }
  /// Whether somebody did; nobody does afterwards.
  bool stop_waiting() { return std::exchange(waiting_, false); }

 private:
  void absorb(Cycle now, CreditPool& pool) {
    while (next_at_ <= now) {
      available_ += next_bytes_;
      if (head_ == kNil) {
        next_at_ = kNever;
        return;
      }
      const std::uint32_t next = head_;
      next_at_ = pool[next].at;
      next_bytes_ = pool[next].bytes;
      head_ = pool[next].next;
      pool.give_back(next);
    }
  }

  Cycle next_at_ = kNever;
  std::uint32_t available_ = 0;
  std::uint32_t next_bytes_ = 0;
  std::uint32_t head_ = kNil;
  std::uint32_t tail_ = kNil;
  bool waiting_ = false;
};

}  // namespace wafersim::sim
