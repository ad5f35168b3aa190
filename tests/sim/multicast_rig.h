#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/sim/machine.h"

namespace wafersim::test {

/// A message from one tile to several, which routers copy on their way.
struct Multicast {
  TileId source = 0;
  std::vector<TileId> receivers;
  Bytes bytes = 0;
  Cycle start = 0;
};

struct MulticastOutcome {
  sim::Measurements measurements;
  std::map<std::pair<std::uint32_t, TileId>, sim::MessageRecord> messages;  ///< by multicast and receiver
};

/// Each tile posts all its receives in cycle 0 and its multicasts, which are listed by start, at their starts. One call in a
/// process.
MulticastOutcome run_multicasts(const std::vector<Multicast>& multicasts, const topology::Mesh& mesh,
                                const models::HardwareModel& hardware, bool shuffle = false,
                                const std::string& routing = "xy");

/// 30 to 90 of them, some to most tiles, of up to six packets, whole units.
std::vector<Multicast> random_multicasts(RandomStream& random, const topology::Mesh& mesh, Bytes packet, Bytes unit);

/// All figures of a run.
std::string text_of(const MulticastOutcome& outcome);

}  // namespace wafersim::test
