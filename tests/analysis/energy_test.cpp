#include "analysis/energy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "analysis/predicted_energy.h"
#include "tests/sim/collective_rig.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/sim/random_plan.h"
#include "topology/routing_policy.h"
#include "workloads/trace_demands.h"

/// Energy is what was counted times its figure, and what was counted is what the trace says. Figures are powers of two of a
/// joule, so that sums of doubles are exact and nothing has to be near.
namespace wafersim::analysis {
namespace {

using models::EnergyPart;
using test::Flow;
using test::isolated_text;
using topology::Mesh;

constexpr double kMatrix = 1.0 / 4, kVector = 1.0 / 2, kSram = 1.0 / 8, kDram = 4, kLink = 2, kRouter = 1.0 / 16, kNic = 1.0 / 32;

models::EnergySpec figures() {
  models::EnergySpec energy;
  energy.matrix = EnergyPerFlop{Rational(1, 4)};
  energy.vector = EnergyPerFlop{Rational(1, 2)};
  energy.sram = EnergyPerBit{Rational(1, 8)};
  energy.dram = EnergyPerBit{Rational(4)};
  energy.link = EnergyPerBit{Rational(2)};
  energy.router = EnergyPerBit{Rational(1, 16)};
  energy.nic = EnergyPerBit{Rational(1, 32)};
  return energy;
}

EnergySummary energy_of_run(const models::HardwareModel& hardware, const Mesh& mesh, const sim::Measurements& run) {
  const bool network = hardware.fidelity != models::Fidelity::ideal;
  const auto energy = energy_of({hardware, mesh, run.tiles, run.links, run.cycles, network, 0});
  EXPECT_TRUE(energy.has_value());
  return energy.value();
}

double part(const EnergySummary& energy, EnergyPart part) { return energy.of(part).value_or(-1); }

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

void expect_conserved(const EnergySummary& energy) {
  double parts = 0;
  for (const EnergySummary::Part& each : energy.parts) parts += each.joules;
  EXPECT_EQ(parts, energy.joules);
  EXPECT_EQ(sum(energy.tiles) + energy.unused_tiles_joules, energy.joules);
  EXPECT_EQ(sum(energy.links), energy.of(EnergyPart::link).value_or(0));
}

/// Runs in a child process, which expects; what it says went wrong is the result.
template <class Work>
void in_child(const Work& work) {
  EXPECT_EQ(isolated_text([&] {
              work();
              return std::string(testing::Test::HasFailure() ? "see above" : "");
            }),
            "");
}

TEST(EnergyOfRuns, OfOneMessageGoesByItsHops) {
  const Mesh mesh({{3, 5}, {}, {}});
  models::HardwareModel hardware = test::plain_hardware(64, Rational(16), 1, 2);
  hardware.energy = figures();
  constexpr Bytes kBytes = 1000;
  for (const auto& [source, destination, hops] : {std::tuple{0, 14, 6}, {7, 7, 0}, {6, 5, 1}, {4, 10, 6}}) {
    in_child([&, from = static_cast<TileId>(source), to = static_cast<TileId>(destination), hop = hops] {
      const auto run = test::run_flows(mesh, hardware, {Flow{from, to, kBytes, 0}}).measurements;
      const EnergySummary energy = energy_of_run(hardware, mesh, run);
      EXPECT_EQ(part(energy, EnergyPart::link), 8 * kBytes * kLink * hop);
      EXPECT_EQ(part(energy, EnergyPart::router), 8 * kBytes * kRouter * (hop + 1));
      EXPECT_EQ(part(energy, EnergyPart::nic), 8 * kBytes * kNic * 2);
      EXPECT_EQ(part(energy, EnergyPart::sram), 8 * kBytes * kSram * 2);
      EXPECT_EQ(part(energy, EnergyPart::matrix), 0);
      EXPECT_EQ(energy.of(EnergyPart::dram), std::nullopt) << "there is none";
      EXPECT_EQ(energy.not_modelled, std::vector{EnergyPart::standing});
      expect_conserved(energy);
      // What passes through tiles that run nothing is on nobody's account.
      const bool passes = hop > 1;
      EXPECT_EQ(energy.unused_tiles_joules, passes ? 8 * kBytes * (kLink + kRouter) * (hop - 1) : 0);
    });
  }
}

/// A ring all-reduce of D bytes moves 2 (n - 1) D over single hops, and adds (n - 1) D.
TEST(EnergyOfRuns, OfARingAllReduce) {
  constexpr std::uint64_t kElements = 480;
  const test::CollectiveCase collective{{2, 4}, workloads::Collective::ring, workloads::CollectiveKind::all_reduce, 2 * kElements,
                                        kElements};
  models::HardwareModel hardware = test::plain_hardware(64, Rational(16), 1, 2);
  hardware.energy = figures();
  in_child([&] {
    const Mesh mesh({{2, 4}, {}, {}});
    const EnergySummary energy =
        energy_of_run(hardware, mesh, test::run_trace(mesh, hardware, test::collective_trace(collective)));
    const double bits = 8.0 * 2 * 7 * 2 * kElements;
    EXPECT_EQ(part(energy, EnergyPart::link), bits * kLink);
    EXPECT_EQ(part(energy, EnergyPart::router), 2 * bits * kRouter);
    EXPECT_EQ(part(energy, EnergyPart::nic), 2 * bits * kNic);
    EXPECT_EQ(part(energy, EnergyPart::vector), 7.0 * kElements * kVector);
    EXPECT_EQ(energy.unused_tiles_joules, 0);
    expect_conserved(energy);
  });
}

TEST(EnergyOfRuns, OfStandingPowerIsThatOfUsedTiles) {
  const Mesh mesh({{3, 5}, {}, {}});
  models::HardwareModel hardware = test::plain_hardware(64, Rational(16), 1, 2);
  hardware.energy.standing = Power{Rational(1, 8)};
  in_child([&] {
    const auto run = test::run_flows(mesh, hardware, {Flow{0, 14, 640, 0}}).measurements;
    const EnergySummary energy = energy_of_run(hardware, mesh, run);
    EXPECT_EQ(run.tiles.size(), 2U);
    EXPECT_EQ(energy.joules, 0.125 * hardware.seconds(run.cycles) * 2);
    EXPECT_EQ(energy.watts, 0.25);
    EXPECT_EQ(energy.not_modelled.size(), models::kEnergyParts - 2) << "all but static, and there is no DRAM";
  });
}

TEST(EnergyOfRuns, WithoutFiguresThereIsNone) {
  const Mesh mesh({{3, 5}, {}, {}});
  const models::HardwareModel hardware = test::plain_hardware(64, Rational(16), 1, 2);
  EXPECT_FALSE(energy_of({hardware, mesh, {}, {}, 10, true, 5}).has_value());
}

/// What the operations and messages of a trace come to.
struct Planned {
  double matrix = 0, vector = 0, core_sram = 0, messages = 0, hops = 0;
};

Planned planned(const workloads::Trace& trace, const Mesh& mesh) {
  Planned out;
  workloads::for_each_op(trace, [&](const workloads::TileBinding& tile, const workloads::Step&, const workloads::Op& op) {
    using enum workloads::OpKind;
    if (op.kind == send) {
      out.messages += static_cast<double>(op.bytes);
      out.hops += static_cast<double>(op.bytes) * mesh.distance(tile.tile, trace.peer(tile, op.peer));
    }
    if (op.kind != matrix && op.kind != vector && op.kind != reduce) return;
    const workloads::Work& work = trace.works[op.work];
    (op.kind == matrix ? out.matrix : out.vector) +=
        static_cast<double>(op.kind == matrix ? work.gemm.flops() : work.vector_flops);
    out.core_sram += static_cast<double>(work.sram_bytes);
  });
  return out;
}

/// Some class lies in both memories.
bool splits_memory(const workloads::Trace& trace) {
  return std::any_of(trace.layouts.begin(), trace.layouts.end(), [](const workloads::MemoryLayout& layout) {
    return std::any_of(layout.begin(), layout.end(),
                       [](const workloads::SramQuota& quota) { return !quota.whole() && quota.in_sram(Bytes{1}) != 0; });
  });
}

/// What is counted in the trace is what was simulated: to the byte, where it does not depend on when things happen.
void expect_predicted(const EnergySummary& energy, const models::HardwareModel& hardware, const Mesh& mesh,
                      const workloads::Trace& trace, const std::string& routing, Cycle cycles) {
  const auto policy = topology::make_routing_policy(routing, mesh);
  const topology::ExpectedLoads loads = policy->expected_loads(mesh, workloads::demands_of(trace));
  const auto predicted = predicted_energy({hardware, mesh, trace, loads, cycles, 0});
  ASSERT_TRUE(predicted.has_value());
  // Loads of drawn routes are means, to the byte.
  const double rounded = routing == "xy" ? 0 : 4.0 * trace.iterations * static_cast<double>(mesh.link_slots());
  for (const EnergySummary::Part& simulated : energy.parts) {
    const double of_trace = part(*predicted, simulated.part);
    switch (simulated.part) {
      case EnergyPart::link:
        EXPECT_NEAR(of_trace, simulated.joules, rounded * kLink);
        break;
      case EnergyPart::router:
        EXPECT_NEAR(of_trace, simulated.joules, rounded * kRouter);
        break;
      case EnergyPart::dram:
        if (splits_memory(trace)) {
          EXPECT_NEAR(of_trace, simulated.joules, 0.5 * simulated.joules);
        } else {
          EXPECT_EQ(of_trace, simulated.joules);
        }
        break;
      default:
        EXPECT_EQ(of_trace, simulated.joules) << to_string(simulated.part);
    }
  }
}

class RandomEnergy : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomEnergy, IsWhatTheTraceSaysTimesTheFigures) {
  test::RandomPlan plan = test::without_copies(test::draw_random_plan(GetParam()));
  plan.fixture.wafer.energy = figures();
  plan.router.routing = GetParam() % 2 == 0 ? "xy" : "o1turn";
  plan.router.virtual_channels = 2;
  SCOPED_TRACE(plan.text);
  const Mesh mesh = plan.fixture.mesh();
  const models::HardwareModel hardware = plan.hardware();
  const workloads::LoweredPlan lowered = plan.lower(hardware, mesh);
  const Planned expected = planned(lowered.trace, mesh);
  in_child([&] {
    const sim::Measurements run = test::run_trace(mesh, hardware, lowered.trace, {}, plan.router.routing);
    const EnergySummary energy = energy_of_run(hardware, mesh, run);
    expect_conserved(energy);
    EXPECT_EQ(part(energy, EnergyPart::matrix), expected.matrix * kMatrix);
    EXPECT_EQ(part(energy, EnergyPart::vector), expected.vector * kVector);
    EXPECT_EQ(part(energy, EnergyPart::sram), (expected.core_sram + 2 * expected.messages) * 8 * kSram);
    EXPECT_EQ(part(energy, EnergyPart::nic), 2 * expected.messages * 8 * kNic);
    if (hardware.dram_capacity != 0) {
      double dram = 0;
      for (const sim::TileMeasurement& tile : run.tiles) dram += static_cast<double>(tile.dram_bytes);
      EXPECT_EQ(part(energy, EnergyPart::dram), dram * 8 * kDram);
      EXPECT_LE(dram, expected.core_sram);
    }
    expect_predicted(energy, hardware, mesh, lowered.trace, plan.router.routing, run.cycles);
    if (hardware.fidelity == models::Fidelity::ideal) {
      EXPECT_EQ(energy.of(EnergyPart::link), std::nullopt) << "nobody knows the ways of messages";
      return;
    }
    // Whatever the route, it is a shortest one.
    EXPECT_EQ(part(energy, EnergyPart::link), expected.hops * 8 * kLink);
    EXPECT_EQ(part(energy, EnergyPart::router), (expected.hops + expected.messages) * 8 * kRouter);
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomEnergy, testing::Range<std::uint64_t>(4000, 4024));

/// A run that is stopped counts what was begun; whatever that is, it is conserved and below the whole.
TEST(EnergyOfRuns, OfAStoppedRunIsPartOfTheWhole) {
  test::RandomPlan plan = test::without_copies(test::draw_random_plan(4003));
  plan.fixture.wafer.energy = figures();
  const Mesh mesh = plan.fixture.mesh();
  const models::HardwareModel hardware = plan.hardware();
  const workloads::LoweredPlan lowered = plan.lower(hardware, mesh);
  const auto run = [&](Cycle most) {
    return isolated_text([&] {
      sim::SimulationOptions options;
      options.max_cycles = most;
      const sim::Measurements measured = test::run_trace(mesh, hardware, lowered.trace, options);
      const EnergySummary energy = energy_of_run(hardware, mesh, measured);
      if (sum(energy.tiles) + energy.unused_tiles_joules != energy.joules) throw std::runtime_error("not conserved");
      std::ostringstream out;
      out << std::hexfloat << measured.cycles << ' ' << energy.joules;
      return out.str();
    });
  };
  const auto joules = [](const std::string& text) { return std::stod(text.substr(text.find(' ') + 1)); };
  const std::string whole = run(kNever);
  const Cycle length = std::stoull(whole);
  double before = 0;
  for (int tenth = 1; tenth < 10; ++tenth) {
    const double now = joules(run(length * static_cast<Cycle>(tenth) / 10));
    EXPECT_GE(now, before);
    EXPECT_LE(now, joules(whole));  // the last operation may have started long ago
    before = now;
    if (tenth == 1) {
      EXPECT_LT(now, joules(whole));
    }
  }
  EXPECT_GT(before, 0);
}

/// A layer's forward pass is a third of its FLOPs, which full recomputation does once more.
TEST(EnergyOfRuns, OfRecomputationIsThatOfTheForwardPass) {
  const auto matrix = [](models::Recompute recompute) {
    workloads::LoweringFixture fixture;
    fixture.layers_alone();
    fixture.training.recompute = recompute;
    fixture.wafer.energy = figures();
    const std::string text = isolated_text([&] {
      const models::HardwareModel hardware = models::resolve_hardware(fixture.wafer, {}, {});
      const Mesh mesh = fixture.mesh();
      const sim::Measurements run = test::run_trace(mesh, hardware, fixture.lower().trace);
      std::ostringstream out;
      out.precision(17);
      out << part(energy_of_run(hardware, mesh, run), EnergyPart::matrix);
      return out.str();
    });
    return std::stod(text);
  };
  workloads::LoweringFixture fixture;
  fixture.layers_alone();
  const auto model = static_cast<double>(models::model_flops(fixture.model, 16));
  EXPECT_EQ(matrix(models::Recompute::none), model * kMatrix);
  EXPECT_EQ(matrix(models::Recompute::full) - matrix(models::Recompute::none), model / 3 * kMatrix);
}

/// What lives in DRAM passes through it each time that it is read or written: optimizer states, once an iteration.
TEST(EnergyOfRuns, OfDramIsThatOfWhatLivesThere) {
  workloads::LoweringFixture fixture;
  fixture.wafer.dram = models::DramSpec{{1ULL << 34}, {Rational(64), true}, {1, 1}};
  fixture.placement[workloads::MemoryClass::optimizer] = workloads::MemoryPlace::dram;
  fixture.wafer.energy = figures();
  in_child([&] {
    const models::HardwareModel hardware = models::resolve_hardware(fixture.wafer, {}, {});
    const Mesh mesh = fixture.mesh();
    const workloads::Trace trace = fixture.lower().trace;
    double bytes = 0;
    workloads::for_each_op(trace, [&](const workloads::TileBinding&, const workloads::Step&, const workloads::Op& op) {
      constexpr auto kOptimizer = static_cast<std::size_t>(workloads::MemoryClass::optimizer);
      const bool computes = op.kind == workloads::OpKind::matrix || op.kind == workloads::OpKind::vector;
      if (computes) bytes += static_cast<double>(trace.works[op.work].class_bytes[kOptimizer]);
    });
    EXPECT_GT(bytes, 0);
    const EnergySummary energy = energy_of_run(hardware, mesh, test::run_trace(mesh, hardware, trace));
    EXPECT_EQ(part(energy, EnergyPart::dram), bytes * 8 * kDram);
  });
}

}  // namespace
}  // namespace wafersim::analysis
