#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"
#include "models/cost.h"
#include "tests/sim/dump.h"
#include "tests/sim/hand_trace.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/sim/random_plan.h"

/// The critical path: contiguous from the first cycle to the last, made of what the observers saw, and free
/// of queueing where nothing queues.
namespace wafersim::test {
namespace {

using sim::PathKind;
using sim::PathSegment;

std::string text_of(const std::vector<PathSegment>& segments) {
  std::string text;
  for (const PathSegment& s : segments) {
    text += fmt::format("{}-{} {} {} tile {} to {} step {} link {} router {} links {}\n", s.from, s.to,
                        to_string(s.kind), to_string(s.axis), s.tile, s.destination, s.step, s.link,
                        s.router_cycles, s.link_cycles);
  }
  return text;
}

/// What is wrong with the form of a path; empty when nothing is.
std::string faults_of(const sim::Measurements& run) {
  if (!run.critical_path) return "there is none";
  Cycle at = 0;
  for (const PathSegment& segment : run.critical_path->segments) {
    if (segment.from != at || segment.to <= segment.from) return fmt::format("a gap at cycle {}", at);
    if (segment.router_cycles + segment.link_cycles > segment.to - segment.from)
      return fmt::format("too much wire at {}", at);
    at = segment.to;
  }
  return at == run.cycles ? "" : fmt::format("it ends at {}, the run at {}", at, run.cycles);
}

/// Everything that took time or was received, to be looked up by who and when.
struct Seen {
  std::map<std::pair<TileId, std::uint32_t>, std::vector<sim::OperationRecord>> operations;
  std::multimap<std::pair<TileId, TileId>, std::pair<Cycle, Cycle>> messages;

  void attach(sim::SimulationOptions& options, const workloads::Trace& trace) {
    for (const workloads::TileBinding& binding : trace.tiles) options.observer.tiles.push_back(binding.tile);
    options.observer.on_operation = [this](const sim::OperationRecord& record) {
      operations[{record.tile, record.step}].push_back(record);
    };
    options.on_message = [this](const sim::MessageRecord& record) {
      messages.insert({{record.source, record.destination}, {record.posted, record.received}});
    };
  }

  /// Operations of that kind fill the segment one after the other, the last memory stall included.
  bool explains(const PathSegment& segment) const {
    const auto found = operations.find({segment.tile, segment.step});
    if (found == operations.end()) return false;
    return std::any_of(found->second.begin(), found->second.end(),
                       [&](const sim::OperationRecord& record) {
                         return record.start <= segment.from && segment.from < record.end;
                       }) &&
           std::any_of(found->second.begin(), found->second.end(), [&](const sim::OperationRecord& record) {
             return record.start < segment.to && segment.to <= record.end;
           });
  }
  /// A message between the two was under way all the time.
  bool sent(const PathSegment& segment) const {
    const auto [first, last] = messages.equal_range({segment.tile, segment.destination});
    return std::any_of(first, last, [&](const auto& entry) {
      return entry.second.first <= segment.from && segment.to <= entry.second.second;
    });
  }
};

std::string unexplained(const sim::Measurements& run, const Seen& seen) {
  for (const PathSegment& segment : run.critical_path->segments) {
    const bool known = sim::is_core(segment.kind) ? seen.explains(segment) : seen.sent(segment);
    if (!known) return "not seen: " + text_of({segment});
  }
  return "";
}

struct Run {
  std::string faults;
  std::string measured;
  std::string path;
};

std::string run_plan(const RandomPlan& scenario, bool record, bool shuffle) {
  const topology::Mesh mesh = scenario.fixture.mesh();
  const models::HardwareModel hardware = scenario.hardware();
  const workloads::LoweredPlan lowered = scenario.lower(hardware, mesh);
  sim::SimulationOptions options;
  options.record_path = record;
  options.shuffle = shuffle;
  Seen seen;
  if (record && !shuffle) seen.attach(options, lowered.trace);
  sim::Measurements result = run_trace(mesh, hardware, lowered.trace, options, scenario.router.routing);
  if (!record) return dump(result);
  std::string faults = faults_of(result);
  if (faults.empty() && !shuffle) faults = unexplained(result, seen);
  if (!faults.empty()) return "FAULT " + faults;
  const std::string path = text_of(result.critical_path->segments);
  result.critical_path.reset();
  return dump(result) + "PATH\n" + path;
}

class RandomPaths : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomPaths, SpanTheRunWithWhatWasSeenAndChangeNothing) {
  const RandomPlan scenario = draw_random_plan(GetParam());
  const std::string recorded = isolated_text([&] { return run_plan(scenario, true, false); });
  ASSERT_FALSE(recorded.starts_with("FAULT")) << scenario.text << recorded;
  const std::string measured = recorded.substr(0, recorded.find("PATH\n"));
  EXPECT_EQ(first_difference(isolated_text([&] { return run_plan(scenario, false, false); }), measured), "")
      << scenario.text;
  EXPECT_EQ(first_difference(isolated_text([&] { return run_plan(scenario, true, true); }), recorded), "")
      << scenario.text;
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPaths, testing::Range<std::uint64_t>(0, 80));

/// Flit by flit, with both ways of switching.
TEST(CriticalPath, SpansRunsOfFlits) {
  for (std::uint64_t seed = 100; seed < 112; ++seed) {
    RandomPlan scenario = without_copies(draw_random_plan(seed, {1, 2}, {1}));
    scenario.network.fidelity = models::Fidelity::flit;
    scenario.network.packet_bytes = {1024};
    scenario.router.pipeline = Duration::of_cycles(2);
    scenario.fixture.wafer.link.bandwidth = {Rational(16), true};
    scenario.router.flit.switching =
        seed % 2 == 0 ? models::Switching::cut_through : models::Switching::wormhole;
    const std::string recorded = isolated_text([&] { return run_plan(scenario, true, false); });
    EXPECT_FALSE(recorded.starts_with("FAULT")) << seed << ' ' << scenario.text << recorded;
  }
}

struct FlowPath {
  Cycle cycles = 0;
  std::vector<PathSegment> segments;
};

FlowPath flow_path(const topology::Mesh& mesh, const models::HardwareModel& hardware,
                   const std::vector<Flow>& flows, const std::string& routing = "xy") {
  sim::SimulationOptions options;
  options.record_path = true;
  const workloads::Trace trace = workloads::flow_trace(flows);
  const sim::Measurements result = run_trace(mesh, hardware, trace, std::move(options), routing);
  EXPECT_EQ(faults_of(result), "");
  return {result.cycles, result.critical_path->segments};
}

/// An idle network: the closed form part by part, and nothing else.
TEST(CriticalPath, OfALoneMessageIsWire) {
  const topology::Mesh mesh({{4, 5}, {}, {}});
  models::HardwareModel hardware = plain_hardware(100, Rational(53687, 1000), 3, 2);
  hardware.injection_bytes_per_cycle = Rational(64);
  hardware.injection_cycles = 4;
  hardware.ejection_cycles = 5;
  hardware.turn_cycles = 6;
  hardware.message_overhead = 7;
  hardware.vc_buffer_bytes = 6400;  // a buffer that a packet fills and empties in turn would be waited for
  for (const Bytes bytes : {Bytes{1}, Bytes{100}, Bytes{1000}, Bytes{99'999}}) {
    const std::string answer = isolated_text([&] {
      const FlowPath path = flow_path(mesh, hardware, {{0, 13, bytes, 50, workloads::Axis::tp}});
      if (path.segments.size() != 4) return "segments:\n" + text_of(path.segments);
      const Cycle router = 6 * 3 + 6, link = 4 + 5 * 2 + 5;
      const PathSegment& wire = path.segments[2];
      EXPECT_EQ(path.segments[0].kind, PathKind::vector);
      EXPECT_EQ(path.segments[0].to, 50U);
      EXPECT_EQ(path.segments[1].kind, PathKind::overhead);
      EXPECT_EQ(path.segments[1].to, 57U);
      EXPECT_EQ(wire.kind, PathKind::wire);
      EXPECT_EQ(wire.axis, workloads::Axis::tp);
      EXPECT_EQ(wire.router_cycles, router);
      EXPECT_EQ(wire.link_cycles, link);
      EXPECT_EQ(path.segments[3].kind, PathKind::overhead);
      EXPECT_EQ(path.cycles, 50 + models::message_latency(hardware, bytes, 5, 1));
      return std::string(testing::Test::HasFailure() ? "failed:\n" + text_of(path.segments) : "");
    });
    EXPECT_EQ(answer, "") << bytes;
  }
}

/// A message that takes longer than a way can count leaves a run without a path, and all else as it is.
TEST(CriticalPath, HasMessagesOfLessThanTwoToThe32Cycles) {
  const topology::Mesh mesh({{1, 3}, {}, {}});
  const models::HardwareModel hardware = plain_hardware(Bytes{1} << 28, Rational(1), 3, 2);
  for (const bool trains : {true, false}) {
    for (const Bytes bytes : {Bytes{0xe000'0000}, Bytes{0x1'2000'0000}}) {
      const std::string answer = isolated_text([&] {
        sim::SimulationOptions options;
        options.record_path = true;
        options.trains = trains;
        const workloads::Trace trace = workloads::flow_trace({{0, 2, bytes, 50, workloads::Axis::tp}});
        const sim::Measurements result = run_trace(mesh, hardware, trace, std::move(options), "xy");
        return fmt::format("{} {}", result.critical_path->complete, result.cycles);
      });
      const Cycle cycles = 50 + models::message_latency(hardware, bytes, 2, 0);
      EXPECT_EQ(answer, fmt::format("{} {}", bytes < Bytes{1} << 32, cycles)) << trains << ' ' << bytes;
    }
  }
}

/// So does an operation that waits for memory after so long; one that does not wait may take any time.
TEST(CriticalPath, HasStalledOperationsOfLessThanTwoToThe32Cycles) {
  const topology::Mesh mesh({{1, 2}, {}, {}});
  models::HardwareModel hardware = plain_hardware(64, Rational(1), 2, 3);
  hardware.sram_bytes_per_cycle = Rational(1);
  for (const Cycle cycles : {Cycle{1} << 31, Cycle{1} << 33}) {
    for (const Cycle stall : {Cycle{0}, Cycle{100}}) {
      const std::string answer = isolated_text([&] {
        HandTrace hand(2);
        hand.step(0, [&](workloads::StepBuilder& b) { b.vector(vector_work(cycles, cycles + stall), {}); });
        sim::SimulationOptions options;
        options.record_path = true;
        const sim::Measurements result = run_trace(mesh, hardware, hand.take(), std::move(options), "xy");
        return fmt::format("{} {}", result.critical_path->complete, result.cycles);
      });
      const bool counts = stall == 0 || cycles < Cycle{1} << 32;
      EXPECT_EQ(answer, fmt::format("{} {}", counts, cycles + stall)) << cycles << ' ' << stall;
    }
  }
}

/// Two messages meet at a link: what the later one waits there is queueing of that link, and all else is
/// wire.
TEST(CriticalPath, NamesTheLinkOnWhichItQueues) {
  const topology::Mesh mesh({{2, 3}, {}, {}});
  const models::HardwareModel hardware = plain_hardware(64, Rational(1), 2, 3);
  // From the west and from the north to the south-east... by way of the link from (1, 0) to (2, 0).
  const FlowPath path =
      flow_path(mesh, hardware, {{0, 2, 64, 10, workloads::Axis::dp}, {1, 2, 64, 12, workloads::Axis::tp}});
  const topology::LinkId shared = topology::Mesh::link(1, topology::Direction::east);
  // The one from tile 1 comes first: 12 + R, that from tile 0 at 10 + 2 R + L waits until 12 + R + 64.
  std::vector<PathSegment> queued;
  for (const PathSegment& segment : path.segments) {
    if (sim::is_queueing(segment.kind)) queued.push_back(segment);
  }
  ASSERT_EQ(queued.size(), 1U) << text_of(path.segments);
  EXPECT_EQ(queued[0].kind, PathKind::link_queue);
  EXPECT_EQ(queued[0].link, shared);
  EXPECT_EQ(queued[0].axis, workloads::Axis::dp);
  EXPECT_EQ(queued[0].to - queued[0].from, (12U + 2 + 64) - (10U + 2 * 2 + 3));
}

/// Behind another message at the port of the NIC.
TEST(CriticalPath, TellsWaitsAtTheNic) {
  const topology::Mesh mesh({{1, 3}, {}, {}});
  const models::HardwareModel hardware = plain_hardware(64, Rational(1), 2, 3);
  const FlowPath path =
      flow_path(mesh, hardware, {{0, 2, 64, 5, workloads::Axis::dp}, {0, 2, 64, 5, workloads::Axis::tp}});
  ASSERT_GE(path.segments.size(), 3U);
  EXPECT_EQ(path.segments[1].kind, PathKind::injection_queue) << text_of(path.segments);
  EXPECT_EQ(path.segments[1].from, 5U);
  EXPECT_EQ(path.segments[1].to, 5U + 64);
  EXPECT_EQ(path.segments[1].axis, workloads::Axis::tp);
}

/// The later of two operands decides, and the operation that holds the engine.
TEST(CriticalPath, FollowsTheLastArrival) {
  const topology::Mesh mesh({{1, 3}, {}, {}});
  const models::HardwareModel hardware = plain_hardware(64, Rational(64), 1, 1);
  HandTrace trace(mesh.tile_count());
  const auto sender = [&](TileId tile, Cycle work) {
    trace.step(tile, [&](workloads::StepBuilder& builder) {
      builder.send(workloads::Axis::tp, 1, tile, 64, {builder.vector(vector_work(work), {})});
    });
  };
  sender(0, 100);
  sender(2, 300);
  trace.step(1, [&](workloads::StepBuilder& builder) {
    builder.vector(vector_work(20), {});
    const auto early = builder.receive(workloads::Axis::tp, 0, 0, 64, {});
    const auto late = builder.receive(workloads::Axis::tp, 2, 2, 64, {});
    builder.vector(vector_work(7), {early, late});
    builder.vector(vector_work(9), {});
  });
  sim::SimulationOptions options;
  options.record_path = true;
  const sim::Measurements run = run_trace(mesh, hardware, trace.take(), std::move(options));
  ASSERT_EQ(faults_of(run), "");
  const std::vector<PathSegment>& path = run.critical_path->segments;
  ASSERT_EQ(path.size(), 3U) << text_of(path);
  EXPECT_EQ(path[0].tile, 2U);
  EXPECT_EQ(path[0].to, 300U);
  EXPECT_EQ(path[1].kind, PathKind::wire);
  EXPECT_EQ(path[2].tile, 1U);
  EXPECT_EQ(path[2].operations, 2U);
  EXPECT_EQ(path[2].to - path[2].from, 16U);
}

/// Random traffic around faults and under policies that draw or adapt.
TEST(CriticalPath, SpansTrafficUnderAllPoliciesAndAroundFaults) {
  topology::MeshSpec faulty;
  faulty.shape = {5, 5};
  faulty.dead_tiles = {{2, 2}};
  faulty.dead_links = {{{0, 1}, {1, 1}}};
  const topology::Mesh whole({{5, 5}, {}, {}});
  const topology::Mesh broken(faulty);
  for (const std::string routing : {"table", "xy", "o1turn", "west_first", "odd_even", "valiant"}) {
    const topology::Mesh& mesh = routing == "table" ? broken : whole;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const std::string answer = isolated_text([&] {
        RandomStream random(seed, "critical_path." + routing);
        models::HardwareModel hardware = plain_hardware(64, Rational(8), 1, 2);
        hardware.virtual_channels = 4;
        hardware.turn_cycles = seed % 2 == 0 ? 0 : 3;
        default_buffers(hardware);
        std::vector<Flow> flows;
        for (int i = 0; i < 300; ++i) {
          const auto tile = [&] {
            while (true) {
              const auto id = static_cast<TileId>(random.below(mesh.tile_count()));
              if (mesh.alive(id)) return id;
            }
          };
          flows.push_back({tile(), tile(), 1 + random.below(1000), random.below(500), workloads::Axis::dp});
        }
        std::stable_sort(flows.begin(), flows.end(),
                         [](const Flow& a, const Flow& b) { return a.start < b.start; });
        hardware.routing = routing;
        flow_path(mesh, hardware, flows, routing);
        return std::string(testing::Test::HasFailure() ? "failed" : "");
      });
      EXPECT_EQ(answer, "") << routing << ' ' << seed;
    }
  }
}

}  // namespace
}  // namespace wafersim::test
