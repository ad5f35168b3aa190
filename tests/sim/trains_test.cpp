// Messages that are simulated as trains give what their packets give, one by one.
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/sim/dump.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/sim/pick.h"
#include "tests/sim/random_plan.h"

namespace wafersim::test {
namespace {

struct Drawn {
  models::WaferSpec wafer;
  models::HardwareModel hardware;
  std::string routing;
  std::vector<Flow> flows;
};

/// Rates that differ and do not divide evenly, buffers down to one packet, memories that the network keeps busy.
Drawn draw(std::uint64_t seed) {
  RandomStream random(seed, "trains");
  Drawn drawn;
  drawn.wafer.mesh.shape = {1 + static_cast<int>(random.below(4)), 1 + static_cast<int>(random.below(5))};
  const Bytes packet = 1 + random.below(64);
  const auto rate = [&random] {
    return Rational(1 + static_cast<std::int64_t>(random.below(40)), 1 + static_cast<std::int64_t>(random.below(3)));
  };
  models::HardwareModel& hardware = drawn.hardware;
  hardware = plain_hardware(packet, rate(), random.below(5), 1 + random.below(6));
  if (random.below(2) == 0) hardware.injection_bytes_per_cycle = rate();
  if (random.below(2) == 0) hardware.ejection_bytes_per_cycle = rate();
  if (random.below(4) != 0) hardware.sram_bytes_per_cycle = rate() * Rational(pick(random, std::vector{1, 3, 8}));
  hardware.virtual_channels = pick(random, std::vector{1, 2, 4});
  hardware.credit_cycles = 1 + random.below(4);
  hardware.injection_cycles = random.below(3);
  hardware.ejection_cycles = random.below(3);
  hardware.message_overhead = random.below(2) * random.below(30);
  hardware.turn_cycles = pick(random, std::vector<Cycle>{0, 0, 1, 20});
  hardware.nic_ports = pick(random, std::vector{models::NicPorts::single, models::NicPorts::per_direction});
  hardware.vc_buffer_bytes = packet * (1 + random.below(4)) + random.below(packet);
  drawn.routing = pick(random, std::vector<std::string>{"xy", "yx", "table"});
  const topology::Mesh mesh(drawn.wafer.mesh);
  const std::uint64_t span = pick(random, std::vector<std::uint64_t>{1, 300, 5000, 50000});
  const auto count = 1 + random.below(60);
  const Bytes longest = packet * pick(random, std::vector<Bytes>{10, 40, 40, 400});
  for (std::uint64_t i = 0; i < count; ++i) {
    drawn.flows.push_back({static_cast<TileId>(random.below(mesh.tile_count())),
                           static_cast<TileId>(random.below(mesh.tile_count())), 1 + random.below(longest),
                           random.below(span)});
  }
  return drawn;
}

std::string run(const Drawn& drawn, bool trains, bool shuffle = false, Cycle max_cycles = kNever, bool record_path = false) {
  return isolated_text([&] {
    const topology::Mesh mesh(drawn.wafer.mesh);
    const workloads::Trace trace = workloads::flow_trace(drawn.flows);
    std::vector<sim::MessageRecord> messages(drawn.flows.size());
    sim::SimulationOptions options;
    options.trains = trains;
    options.shuffle = shuffle;
    options.max_cycles = max_cycles;
    options.record_path = record_path;
    options.on_message = [&](const sim::MessageRecord& record) { messages[record.key & 0xffffff] = record; };
    const sim::Measurements result = run_trace(mesh, drawn.hardware, trace, std::move(options), drawn.routing);
    std::string text = dump(result);
    for (const sim::MessageRecord& message : messages) {
      text += std::to_string(message.posted) + " " + std::to_string(message.injected) + " " +
              std::to_string(message.received) + " " + std::to_string(message.queued) + "\n";
    }
    return text;
  });
}

Cycle length_of(const std::string& dump) { return std::stoull(dump.substr(std::string("cycles ").size())); }

TEST(Trains, EqualPacketsOnRandomTraffic) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    const Drawn drawn = draw(seed);
    const std::string packets = run(drawn, false);
    ASSERT_EQ(first_difference(run(drawn, true), packets), "");
    if (seed % 4 == 0) {
      ASSERT_EQ(first_difference(run(drawn, true, true), packets), "") << "shuffled";
    }
    if (seed % 4 != 1) continue;
    RandomStream random(seed, "trains.stop");
    const Cycle stop = random.below(length_of(packets) + 1);
    ASSERT_EQ(first_difference(run(drawn, true, false, stop), run(drawn, false, false, stop)), "") << "stopped at " << stop;
  }
}

/// So that the comparisons with a critical path compare something.
TEST(Trains, AreFormedWhileACriticalPathIsRecorded) {
  EXPECT_EQ(isolated_text([] {
              const topology::Mesh mesh({{1, 4}, {}, {}});
              const workloads::Trace trace = workloads::flow_trace({{0, 3, 10'000, 7}, {2, 1, 10'000, 9}});
              sim::SimulationOptions options;
              options.record_path = true;
              const sim::Measurements result = run_trace(mesh, plain_hardware(100, Rational(8), 1, 2), trace, std::move(options), "xy");
              return std::to_string(result.engine.trains.messages);
            }),
            "2");
}

/// Chains that are made of what is known of trains are those that packets leave behind one by one.
TEST(Trains, HaveTheCriticalPathOfTheirPackets) {
  for (std::uint64_t seed = 1000; seed < 1200; ++seed) {
    SCOPED_TRACE(seed);
    const Drawn drawn = draw(seed);
    const std::string packets = run(drawn, false, false, kNever, true);
    ASSERT_NE(packets.find("\npath 1\n"), std::string::npos);
    ASSERT_EQ(first_difference(run(drawn, true, false, kNever, true), packets), "");
    if (seed % 4 == 0) {
      ASSERT_EQ(first_difference(run(drawn, true, true, kNever, true), packets), "") << "shuffled";
    }
  }
}

/// On real plans, with what repeats in them folded or not; and what links do over time.
TEST(Trains, EqualPacketsInRandomPlans) {
  for (std::uint64_t seed = 3000; seed < 3040; ++seed) {
    const RandomPlan plan = draw_random_plan(seed, {1, 3, 12});
    SCOPED_TRACE(plan.text);
    const auto run_plan = [&](bool trains, bool fold, bool windows, bool path = false) {
      return isolated_text([&] {
        const topology::Mesh mesh = plan.fixture.mesh();
        models::HardwareModel hardware = plan.hardware();
        const workloads::LoweredPlan lowered = plan.lower(hardware, mesh);
        sim::SimulationOptions options;
        options.trains = trains;
        options.fold = options.fold_eagerly = fold;
        options.record_activity = windows;
        options.record_path = path;
        const sim::Measurements result = run_trace(mesh, hardware, lowered.trace, std::move(options), plan.router.routing);
        return dump(result);
      });
    };
    const std::string packets = run_plan(false, false, false);
    ASSERT_EQ(first_difference(run_plan(true, false, false), packets), "");
    ASSERT_EQ(first_difference(run_plan(true, true, false), packets), "") << "folded";
    const std::string windows = run_plan(false, false, true);
    ASSERT_GT(windows.size(), packets.size());
    ASSERT_EQ(first_difference(run_plan(true, false, true), windows), "") << "with windows";
    const std::string path = run_plan(false, false, false, true);
    ASSERT_NE(path.find("\npath 1\n"), std::string::npos);
    ASSERT_EQ(first_difference(run_plan(true, false, false, true), path), "") << "with a critical path";
    ASSERT_EQ(first_difference(run_plan(true, true, false, true), path), "") << "with a critical path, folded";
  }
}

}  // namespace
}  // namespace wafersim::test
