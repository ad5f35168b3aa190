#pragma once

#include <limits>

#include "base/error.h"
#include "base/units.h"
#include "sim/pool.h"

namespace wafersim::sim {

class StateWriter;

/// A credit on its way upstream.
struct Credit {
  Cycle at = 0;
  std::uint32_t next = kNil;
  std::uint32_t bytes = 0;
};
using CreditPool = Pool<Credit>;

/// Room in one downstream VC buffer as its upstream end sees it. The downstream end knows at the grant when a credit will
/// be back, so it is entered with its time at once and counts from then on: no event for each credit. The last two credits
/// are held in place with their times, which is as many as are under way behind a stream of packets with the default
/// buffers; when more are under way, those behind the first two wait in the pool. Which of them have arrived changes from
/// call to call in no order that a branch predictor learns: the usual path computes and does not branch.
class CreditCounter {
 public:
  /// Below 4 GiB.
  void set_capacity(Bytes bytes) {
    if (bytes > std::numeric_limits<std::uint32_t>::max()) throw PlanError("router.vc_buffer must be below 4 GiB");
    given_ = static_cast<std::uint32_t>(bytes);
  }

  bool has_room(Bytes bytes, Cycle now, CreditPool& pool) { return room(now, pool) >= bytes; }
  /// Bytes of it.
  std::uint32_t room(Cycle now, CreditPool& pool) {
    if (tail_ != kNobody) [[unlikely]] advance_queue(now, pool);
    return given_ - (only_if(first_at_ > now, first_bytes_) + only_if(second_at_ > now, second_bytes_));
  }
  /// After has_room() was true.
  void take(Bytes bytes) { given_ -= static_cast<std::uint32_t>(bytes); }

  /// A credit that arrives at `at`, not before any credit given earlier.
  void give(Bytes bytes, Cycle at, Cycle now, CreditPool& pool) {
    if (first_at_ > now || tail_ != kNobody) [[unlikely]] return queue(static_cast<std::uint32_t>(bytes), at, now, pool);
    enter(static_cast<std::uint32_t>(bytes), at);
  }

  /// When the next credit known of arrives; kNever when none is on its way. After has_room() was false in this cycle.
  Cycle next_arrival(Cycle now) const {
    if (first_at_ > now) return first_at_;
    return second_at_ > now ? second_at_ : kNever;
  }

  /// What there is of room now, and what is known to come: so much, all of it by then.
  struct Outlook {
    Bytes room = 0;
    Bytes returning = 0;
    Cycle returned_at = 0;
  };
  Outlook outlook(Cycle now, CreditPool& pool) {
    Outlook seen{room(now, pool), 0, second_at_};
    seen.returning = given_ - static_cast<std::uint32_t>(seen.room);
    if (tail_ == kNobody) return seen;
    for (std::uint32_t index = pool[tail_].next;; index = pool[index].next) {
      seen.returning += pool[index].bytes;
      if (index == tail_) break;
    }
    seen.returned_at = pool[tail_].at;
    return seen;
  }

  /// Somebody waits for a credit of which no arrival is known yet.
  void wait() { waiting_ = 1; }
  /// Whether somebody did; nobody does afterwards.
  bool stop_waiting() {
    const bool waited = waiting_ != 0;
    waiting_ = 0;
    return waited;
  }

  /// Its state, see sim/state_archive.h.
  template <class Archive>
  void visit(Archive& archive, CreditPool& pool);

 private:
  template <class Visit>
  void for_each_queued(const CreditPool& pool, Visit visit_credit) const;
  void write_relative(StateWriter& writer, const CreditPool& pool) const;
  /// Those that wait in the pool.
  void give_back(CreditPool& pool) {
    while (tail_ != kNobody) {
      const std::uint32_t head = pool[tail_].next;
      pool[tail_].next = pool[head].next;
      if (head == tail_) tail_ = kNobody;
      pool.give_back(head);
    }
  }

  /// `bytes` or 0, in a way that compilers do not turn into a branch.
  static std::uint32_t only_if(bool condition, std::uint32_t bytes) {
    return bytes & (0U - static_cast<std::uint32_t>(condition));
  }
  /// Takes a credit in place; the first of those there has arrived.
  void enter(std::uint32_t bytes, Cycle at) {
    given_ += bytes;
    first_at_ = second_at_;
    first_bytes_ = second_bytes_;
    second_at_ = at;
    second_bytes_ = bytes;
  }

  [[gnu::noinline]] void queue(std::uint32_t bytes, Cycle at, Cycle now, CreditPool& pool) {
    append({at, kNil, bytes}, pool);
    advance_queue(now, pool);
  }
  void append(const Credit& credit, CreditPool& pool) {
    const std::uint32_t fresh = pool.take();
    pool[fresh].at = credit.at;
    pool[fresh].bytes = credit.bytes;
    if (tail_ == kNobody) {
      pool[fresh].next = fresh;
    } else {
      pool[fresh].next = pool[tail_].next;
      pool[tail_].next = fresh;
    }
    require_invariant(fresh < kNobody, "too many credits under way");
    tail_ = fresh & kNobody;
  }
  /// Takes those in place that can be.
  [[gnu::noinline]] void advance_queue(Cycle now, CreditPool& pool) {
    while (tail_ != kNobody && first_at_ <= now) {
      const std::uint32_t head = pool[tail_].next;
      enter(pool[head].bytes, pool[head].at);
      if (head == tail_) {
        tail_ = kNobody;
      } else {
        pool[tail_].next = pool[head].next;
      }
      pool.give_back(head);
    }
  }

  // Of the two credits in place, in order; the first is never later than the second.
  Cycle first_at_ = 0;
  Cycle second_at_ = 0;
  std::uint32_t first_bytes_ = 0;
  std::uint32_t second_bytes_ = 0;
  std::uint32_t given_ = 0;  ///< room when all credits in place have arrived
  // In half a cache line, so that an output and two virtual channels take two.
  static constexpr std::uint32_t kNobody = kNil >> 1;
  std::uint32_t tail_ : 31 = kNobody;  ///< of the circular list of the others
  std::uint32_t waiting_ : 1 = 0;
};
static_assert(sizeof(CreditCounter) == 32);

}  // namespace wafersim::sim
