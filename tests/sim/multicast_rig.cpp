#include "tests/sim/multicast_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "tests/sim/dump.h"
#include "tests/sim/hand_trace.h"

namespace wafersim::test {
namespace {

using workloads::Axis;

/// The channel of multicast i is i.
workloads::Trace trace_of(const std::vector<Multicast>& multicasts, const topology::Mesh& mesh) {
  HandTrace trace(mesh.tile_count());
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    trace.step(tile, [&](workloads::StepBuilder& builder) {
      Cycle time = 0;
      std::vector<workloads::OpId> before;
      for (std::uint32_t i = 0; i < multicasts.size(); ++i) {
        const Multicast& each = multicasts[i];
        for (const TileId receiver : each.receivers) {
          if (receiver == tile) builder.receive(Axis::dp, each.source, i, each.bytes, {});
        }
        if (each.source != tile) continue;
        if (each.start > time) before = {builder.vector(vector_work(each.start - time), before)};
        time = std::max(time, each.start);
        builder.multicast(Axis::dp, each.receivers, i, each.bytes, before);
      }
    });
  }
  return trace.take();
}

}  // namespace

MulticastOutcome run_multicasts(const std::vector<Multicast>& multicasts, const topology::Mesh& mesh,
                                const models::HardwareModel& hardware, bool shuffle, const std::string& routing) {
  MulticastOutcome outcome;
  sim::SimulationOptions options;
  options.shuffle = shuffle;
  options.on_message = [&](const sim::MessageRecord& record) {
    const auto channel = static_cast<std::uint32_t>(record.key & 0x7fffff);
    EXPECT_TRUE(outcome.messages.try_emplace({channel, record.destination}, record).second);
  };
  outcome.measurements = run_trace(mesh, hardware, trace_of(multicasts, mesh), options, routing);
  return outcome;
}

std::vector<Multicast> random_multicasts(RandomStream& random, const topology::Mesh& mesh, Bytes packet, Bytes unit) {
  std::vector<Multicast> list;
  const std::uint64_t count = 30 + random.below(60);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto source = static_cast<TileId>(random.below(mesh.tile_count()));
    std::set<TileId> receivers;
    const std::uint64_t most = random.below(3) == 0 ? mesh.tile_count() : 3;
    for (std::uint64_t n = 1 + random.below(most); n > 0; --n) {
      receivers.insert(static_cast<TileId>(random.below(mesh.tile_count())));
    }
    receivers.erase(source);
    if (receivers.empty()) continue;
    const Bytes bytes = unit * (1 + random.below(6 * packet / unit));
    list.push_back({source, {receivers.begin(), receivers.end()}, bytes, random.below(200)});
  }
  std::stable_sort(list.begin(), list.end(), [](const Multicast& a, const Multicast& b) { return a.start < b.start; });
  return list;
}

std::string text_of(const MulticastOutcome& outcome) {
  std::string text = dump(outcome.measurements);
  for (const auto& [where, message] : outcome.messages) {
    text += fmt::format("{} {}: {} {} {} {}\n", where.first, where.second, message.posted, message.injected, message.received,
                        message.queued);
  }
  return text;
}

}  // namespace wafersim::test
