#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "tests/sim/dump.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/sim/random_plan.h"

/// Folding changes nothing but the time that a run takes.
namespace wafersim::test {
namespace {

struct Result {
  std::string dump;
  std::uint64_t periods = 0;
  int replicas = 0;
  double fraction = 0;
  std::string stopped_by;  ///< the first reason
};

struct Recorded {
  bool memory = false;
  bool activity = false;
  bool links = false;
  bool path = false;
  std::set<int> replicas = {};  ///< of whose tiles spans and events are recorded
  std::size_t repeated_events = std::size_t{1} << 21;
  bool periods = true;       ///< are skipped
  bool stages = false;       ///< do once what they do again
};

std::vector<TileId> tiles_of(const std::set<int>& replicas, const workloads::Trace& trace) {
  std::vector<TileId> tiles;
  for (const workloads::TileBinding& binding : trace.tiles) {
    if (replicas.contains(binding.group / trace.pipeline_stages)) tiles.push_back(binding.tile);
  }
  return tiles;
}

/// What an observer is told, line by line.
sim::TileObserver writes_to(std::ostream& out, const std::vector<TileId>& tiles) {
  const auto on_operation = [&out](const sim::OperationRecord& operation) {
    out << "operation " << operation.tile << ' ' << operation.step << ' ' << to_string(operation.kind) << ' '
        << to_string(operation.axis) << ' ' << operation.start << ' ' << operation.end << '\n';
  };
  const auto on_memory = [&out](TileId tile, Cycle cycle, const sim::MemoryLevels& levels) {
    out << "level " << tile << ' ' << cycle << ' ' << levels.sram << ' ' << levels.dram << ' ' << levels.total << '\n';
  };
  const auto on_message = [&out](const sim::MessageRecord& message) {
    out << "message " << message.source << ' ' << message.destination << ' ' << message.key << ' ' << to_string(message.axis) << ' '
        << message.tensor << ' ' << message.bytes << ' ' << message.posted << ' ' << message.injected << ' ' << message.received
        << ' ' << message.queued << '\n';
  };
  return {tiles, on_operation, on_memory, on_message};
}

/// Runs in a child process.
Result run(const RandomPlan& plan, bool fold, Cycle max_cycles = kNever, const Recorded& recorded = {}) {
  const std::string text = isolated_text([&] {
    const topology::Mesh mesh = plan.fixture.mesh();
    const models::HardwareModel hardware = plan.hardware();
    const workloads::LoweredPlan lowered = plan.lower(hardware, mesh);
    sim::SimulationOptions options;
    options.fold = options.fold_eagerly = fold;
    options.fold_periods = recorded.periods;
    options.fold_stages = recorded.stages;
    options.max_cycles = max_cycles;
    options.record_memory = recorded.memory;
    options.record_activity = recorded.activity;
    options.record_links = recorded.links;
    options.record_path = recorded.path;
    options.activity_tiles = tiles_of(recorded.replicas, lowered.trace);
    options.repeated_events = recorded.repeated_events;
    std::ostringstream events;
    options.observer = writes_to(events, options.activity_tiles);
    const sim::Measurements result = run_trace(mesh, hardware, lowered.trace, options, plan.router.routing);
    const sim::FoldMeasurement& folded = result.engine.fold;
    const std::string reason = folded.stopped_by.empty() ? "" : folded.stopped_by.front();
    return reason + '\n' + std::to_string(folded.skipped_periods) + ' ' + std::to_string(folded.replicas_folded) + ' ' +
           std::to_string(folded.fraction) + '\n' + dump(result) + events.str();
  });
  Result result;
  std::istringstream lines(text);
  std::getline(lines, result.stopped_by);
  lines >> result.periods >> result.replicas >> result.fraction;
  result.dump = text.substr(text.find('\n', result.stopped_by.size() + 1) + 1);
  return result;
}

Cycle length_of(const Result& result) { return std::stoull(result.dump.substr(std::string("cycles ").size())); }

class RandomFolding : public testing::TestWithParam<std::uint64_t> {};

/// Half of the plans run on routes that are drawn for each packet, or chosen by room.
RandomPlan draw(std::uint64_t seed) {
  RandomPlan plan = without_copies(draw_random_plan(seed, {1, 6, 14}, {1, 2, 4}));
  if (seed % 2 == 0) return plan;
  plan.router.routing = std::vector{"odd_even", "west_first", "o1turn", "valiant"}[seed / 2 % 4];
  plan.router.virtual_channels = 2;
  plan.text += plan.router.routing;
  return plan;
}

TEST_P(RandomFolding, EqualsTheRunInFull) {
  const RandomPlan plan = draw(GetParam());
  const Result full = run(plan, false);
  EXPECT_EQ(full.periods, 0U);
  EXPECT_EQ(full.fraction, 0.0);
  EXPECT_EQ(first_difference(run(plan, true).dump, full.dump), "") << plan.text;
  EXPECT_EQ(first_difference(run(plan, true, kNever, {.stages = true}).dump, full.dump), "") << plan.text;
  const Recorded components{.periods = false, .stages = true};
  EXPECT_EQ(first_difference(run(plan, true, kNever, components).dump, full.dump), "") << plan.text;
  const Cycle middle = length_of(full) * (GetParam() % 7 + 1) / 8;
  EXPECT_EQ(first_difference(run(plan, true, middle, components).dump, run(plan, false, middle).dump), "") << plan.text;
  Recorded recorded{.memory = GetParam() % 3 == 0, .activity = GetParam() % 4 != 1, .links = true, .path = true};
  if (GetParam() % 2 == 0) recorded.replicas = {0};
  EXPECT_EQ(first_difference(run(plan, true, kNever, recorded).dump, run(plan, false, kNever, recorded).dump), "") << plan.text;
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomFolding, testing::Range<std::uint64_t>(2000, 2040));

RandomPlan pipeline(int dp, int microbatches, workloads::PipelineSchedule schedule) {
  RandomPlan plan;
  plan.fixture.wafer.mesh.shape = {8, 8};
  plan.fixture.plan.dp = dp;
  plan.fixture.plan.tp = 2;
  plan.fixture.plan.pp = 4;
  plan.fixture.plan.zero = 1;
  plan.fixture.plan.schedule = schedule;
  plan.fixture.model.layers = 4;
  plan.fixture.training.microbatch = 1;
  plan.fixture.training.global_batch = dp * microbatches;
  plan.router.routing = "xy";
  return plan;
}

TEST(Folding, SkipsThePeriodsOfASteadyPipeline) {
  using enum workloads::PipelineSchedule;
  for (const auto schedule : {one_f_one_b, zb_h1}) {
    const RandomPlan plan = pipeline(1, 40, schedule);
    const Result full = run(plan, false);
    const Result folded = run(plan, true);
    EXPECT_EQ(first_difference(folded.dump, full.dump), "") << to_string(schedule);
    EXPECT_GE(folded.periods, 10U) << to_string(schedule);
    EXPECT_GT(folded.fraction, 0.5) << to_string(schedule);
  }
}

/// A pipeline that is only filled and drained has no period, but its stages do the same for each microbatch.
TEST(Folding, StagesDoOnceWhatTheyDoAgain) {
  for (const int dp : {1, 4}) {
    const RandomPlan plan = pipeline(dp, 4, workloads::PipelineSchedule::one_f_one_b);
    const Result full = run(plan, false);
    const Result folded = run(plan, true, kNever, {.periods = false, .stages = true});
    EXPECT_EQ(first_difference(folded.dump, full.dump), "");
    EXPECT_EQ(folded.periods, 0U);
    EXPECT_GT(folded.fraction, dp == 1 ? 0.1 : 0.5);
    for (const Cycle at : {length_of(full) / 3, length_of(full) * 2 / 3}) {
      EXPECT_EQ(first_difference(run(plan, true, at, {.periods = false, .stages = true}).dump, run(plan, false, at).dump), "") << at;
    }
  }
}

TEST(Folding, SimulatesReplicasAsOneUntilTheyMeet) {
  const RandomPlan plan = pipeline(4, 6, workloads::PipelineSchedule::one_f_one_b);
  const Result full = run(plan, false);
  const Result folded = run(plan, true);
  EXPECT_EQ(first_difference(folded.dump, full.dump), "");
  EXPECT_EQ(folded.replicas, 4);
  EXPECT_GT(folded.fraction, 0.3);
  const Cycle middle = length_of(full) / 3;
  EXPECT_EQ(first_difference(run(plan, true, middle).dump, run(plan, false, middle).dump), "");
}

/// Borders of reticles may lie in all replicas alike, or not.
TEST(Folding, ReplicasWithOtherLinksAreNotOne) {
  for (const topology::Shape every : {topology::Shape{2, 4}, topology::Shape{3, 3}}) {
    RandomPlan plan = pipeline(4, 6, workloads::PipelineSchedule::one_f_one_b);
    plan.fixture.wafer.reticle = models::ReticleSpec{every, Bandwidth{Rational(8), true}, Duration::of_cycles(9)};
    const Result folded = run(plan, true);
    EXPECT_EQ(first_difference(folded.dump, run(plan, false).dump), "");
    EXPECT_EQ(folded.replicas, every.rows == 2 ? 4 : 0);
  }
}

TEST(Folding, RingsAndTurnsFold) {
  for (const topology::Wrap wrap : {topology::Wrap::none, topology::Wrap::both}) {
    RandomPlan plan = pipeline(1, 40, workloads::PipelineSchedule::one_f_one_b);
    plan.fixture.wafer.mesh.wrap = wrap;
    plan.router.virtual_channels = 2;
    plan.router.turn = Duration::of_cycles(20);
    const Result folded = run(plan, true);
    EXPECT_EQ(first_difference(folded.dump, run(plan, false).dump), "");
    EXPECT_GE(folded.periods, 10U);
  }
}

TEST(Folding, ExpressLinksFoldAndSharedRoutersFoldTheirPeriods) {
  RandomPlan plan = pipeline(4, 40, workloads::PipelineSchedule::one_f_one_b);
  plan.fixture.wafer.express = models::ExpressSpec{{2, 2}, {1, 1}, {}, {}};
  Result folded = run(plan, true);
  EXPECT_EQ(first_difference(folded.dump, run(plan, false).dump), "");
  EXPECT_GE(folded.periods, 10U);
  plan.fixture.wafer.express.reset();
  plan.fixture.wafer.mesh.concentration = {2, 2};
  plan.fixture.wafer.nic.ports = models::NicPorts::single;
  folded = run(plan, true);
  EXPECT_EQ(first_difference(folded.dump, run(plan, false).dump), "");
  EXPECT_EQ(folded.replicas, 0) << "tiles of several replicas may share a router";
  EXPECT_GE(folded.periods, 10U);
}

TEST(Folding, KeepsWhatTilesHoldOverTime) {
  const RandomPlan plan = pipeline(2, 24, workloads::PipelineSchedule::one_f_one_b);
  const Result folded = run(plan, true, kNever, {.memory = true});
  EXPECT_EQ(first_difference(folded.dump, run(plan, false, kNever, {.memory = true}).dump), "");
  EXPECT_GE(folded.periods, 5U);
}

/// Periods that are skipped and replicas that are not simulated are recorded as if they had been.
TEST(Folding, RecordsWhatItDoesNotSimulate) {
  const auto folds = [](const RandomPlan& plan, const Recorded& recorded, std::uint64_t periods, int replicas) {
    const Result folded = run(plan, true, kNever, recorded);
    EXPECT_EQ(first_difference(folded.dump, run(plan, false, kNever, recorded).dump), "");
    EXPECT_GE(folded.periods, periods);
    EXPECT_EQ(folded.replicas, replicas);
  };
  using enum workloads::PipelineSchedule;
  const RandomPlan plan = pipeline(4, 40, one_f_one_b);
  folds(plan, {.activity = true, .replicas = {0}}, 10, 4);
  folds(plan, {.memory = true, .replicas = {0}}, 10, 4);
  folds(plan, {.activity = true, .replicas = {0, 2}}, 10, 0);
  folds(plan, {.path = true}, 10, 4);
  folds(pipeline(1, 300, zb_h1), {.memory = true, .activity = true, .path = true, .replicas = {0}}, 100, 0);
  RandomPlan iterations = pipeline(2, 4, one_f_one_b);
  iterations.fixture.training.iterations = 40;
  folds(iterations, {.activity = true, .path = true, .replicas = {0}}, 6, 2);
}

/// Spans that are not kept to the end end where they do in the run in full.
TEST(Folding, RecordsAsManySpansAsThereIsRoomFor) {
  const RandomPlan plan = pipeline(1, 6'000, workloads::PipelineSchedule::one_f_one_b);
  const Recorded recorded{.activity = true, .replicas = {0}};
  const Result folded = run(plan, true, kNever, recorded);
  EXPECT_EQ(first_difference(folded.dump, run(plan, false, kNever, recorded).dump), "");
  EXPECT_GE(folded.periods, 1'000U);
  EXPECT_NE(folded.dump.find("\nspans of 0 0 "), std::string::npos) << "there was room for all";
}

/// A period of more events than may be told again is simulated each time.
TEST(Folding, StopsWhereTooMuchIsRecorded) {
  const RandomPlan plan = pipeline(1, 40, workloads::PipelineSchedule::one_f_one_b);
  const Recorded few{.activity = true, .path = true, .replicas = {0}, .repeated_events = 100};
  const Result stopped = run(plan, true, kNever, few);
  EXPECT_EQ(first_difference(stopped.dump, run(plan, false, kNever, few).dump), "");
  EXPECT_EQ(stopped.periods, 0U);
  EXPECT_EQ(stopped.stopped_by, "periods: too much is recorded in one to be told again");
}

TEST(Folding, RecordsUpToWhereTheRunIsStopped) {
  const RandomPlan plan = pipeline(2, 40, workloads::PipelineSchedule::one_f_one_b);
  const Cycle length = length_of(run(plan, false));
  const Recorded recorded{.activity = true, .replicas = {0}};
  for (const Cycle at : {length / 4, length / 2, length * 3 / 4, length - 1}) {
    EXPECT_EQ(first_difference(run(plan, true, at, recorded).dump, run(plan, false, at, recorded).dump), "") << at;
  }
}

TEST(Folding, SkipsWholeIterations) {
  RandomPlan plan = pipeline(2, 4, workloads::PipelineSchedule::one_f_one_b);
  plan.fixture.training.iterations = 40;
  const Result full = run(plan, false);
  const Result folded = run(plan, true);
  EXPECT_EQ(first_difference(folded.dump, full.dump), "");
  EXPECT_GE(folded.periods, 6U);
}

TEST(Folding, StopsWhereTheRunIsStopped) {
  const RandomPlan plan = pipeline(1, 40, workloads::PipelineSchedule::one_f_one_b);
  const Cycle length = length_of(run(plan, false));
  for (const Cycle at : {length / 2, length * 3 / 4, length - 1}) {
    EXPECT_EQ(first_difference(run(plan, true, at).dump, run(plan, false, at).dump), "") << at;
  }
}

}  // namespace
}  // namespace wafersim::test
