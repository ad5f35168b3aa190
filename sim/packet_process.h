#pragma once

#include "base/random.h"
#include "base/units.h"
#include "workloads/synthetic_traffic.h"

namespace wafersim::sim {

/// When a tile makes packets. Decides with whole numbers only: a probability is a threshold of 64 bits.
class PacketProcess {
 public:
  /// Throws PlanError when the load cannot be reached: more than a packet a cycle, or bursts weaker than the mean load.
  explicit PacketProcess(const workloads::TrafficSpec& spec);

  /// The first cycle in [from, end) in which a packet is made; kNever when there is none. `on` is the state of an on-off process
  /// in the cycle before `from`.
  Cycle next(Cycle from, Cycle end, bool& on, RandomStream& random) const {
    RandomStream draws = random;  // in registers
    Cycle at = from;
    if (bursts_) {
      for (; at < end; ++at) {
        on = on ? draws.next() >= stop_ : draws.next() < start_;
        if (on && draws.next() < packet_) break;
      }
    } else {
      while (at < end && draws.next() >= packet_) ++at;
    }
    random = draws;
    return at < end ? at : kNever;
  }
  /// The state before the first cycle.
  bool initially_on(RandomStream& random) const { return !bursts_ || (random.next() & 1U) != 0; }

 private:
  bool bursts_ = false;
  std::uint64_t packet_ = 0;  ///< per cycle; with bursts per cycle within one
  std::uint64_t start_ = 0;
  std::uint64_t stop_ = 0;
};

}  // namespace wafersim::sim
