#include "sim/activity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "analysis/hot_flows.h"
#include "base/random.h"
#include "tests/sim/machine.h"
#include "tests/workloads/lowering_fixture.h"

/// What is recorded on request adds up to what is always measured.
namespace wafersim::test {
namespace {

using sim::CycleHistogram;
using sim::CycleKind;
using sim::CyclesByKind;
using sim::LinkLoad;
using sim::LoadWindows;

TEST(CycleHistogram, ClassesHoldTheirValues) {
  CycleHistogram histogram;
  const std::vector<Cycle> values = {
      0, 1, 15, 16, 17, 18, 31, 32, 35, 36, 1000, 1023, 1024, Cycle{1} << 62, ~Cycle{0}};
  for (const Cycle value : values) histogram.add(value);
  std::uint64_t count = 0;
  Cycle before = 0;
  for (const CycleHistogram::Class& each : histogram.classes()) {
    EXPECT_EQ(each.count, static_cast<std::uint64_t>(std::count_if(
                              values.begin(), values.end(),
                              [&](Cycle value) { return value >= each.from && value <= each.to; })))
        << each.from << " to " << each.to;
    EXPECT_TRUE(count == 0 || each.from > before);
    EXPECT_LE(each.to - each.from, each.from / 8);
    before = each.to;
    count += each.count;
  }
  EXPECT_EQ(count, values.size());
}

/// One tile and one link, charged and sampled as a run does, against plain sums; windows double again and
/// again.
TEST(LoadWindows, SumsAreThoseOfTheirCycles) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(seed, "windows");
    const Cycle end = 1 + random.below(200'000);
    LoadWindows windows(1, 1);
    std::vector<std::pair<Cycle, Cycle>> charges;
    for (Cycle at = 0; at < end;) {
      const Cycle until = std::min<Cycle>(end, at + 1 + random.below(5'000));
      while (windows.next_sample() <= at) {
        const Cycle sampled = windows.next_sample();
        windows.sample({{sampled / 2, sampled}});
      }
      windows.charge(0, at % 2 == 0 ? CycleKind::compute : CycleKind::idle, at, until);
      charges.emplace_back(at, until);
      at = until;
    }
    while (windows.next_sample() <= end) windows.sample({{windows.next_sample() / 2, windows.next_sample()}});
    windows.end_at(end);
    if (windows.next_sample() == end) {
      windows.sample({{end / 2, end}});
    }
    const sim::WindowMeasurement result = windows.take(end);
    ASSERT_EQ(result.tiles.size(), result.count);
    ASSERT_EQ(result.count, ceil_div(end, result.length));
    LinkLoad so_far;
    for (std::size_t i = 0; i < result.count; ++i) {
      const Cycle from = i * result.length;
      const Cycle to = std::min(end, from + result.length);
      CyclesByKind expected{};
      for (const auto& [first, last] : charges) {
        const Cycle both = std::max(from, std::min(to, last)) - std::min(to, std::max(from, first));
        if (first < to && last > from) {
          expected[static_cast<std::size_t>(first % 2 == 0 ? CycleKind::compute : CycleKind::idle)] += both;
        }
      }
      EXPECT_EQ(result.tiles[i], expected) << "seed " << seed << ", window " << i << " of " << result.length;
      so_far.busy += result.links[i].busy;
      so_far.queued += result.links[i].queued;
      EXPECT_EQ(so_far.busy, to / 2);
      EXPECT_EQ(so_far.queued, to);
    }
  }
}

/// A tile and a link that do the same again and again. The tile is charged up to some cycles late.
class Repeated {
 public:
  explicit Repeated(RandomStream& random) : lag_(random.below(50)) {
    for (Cycle at = 0; at < 100 + random.below(3'000);) {
      ends_.push_back(at += 1 + random.below(400));
    }
    period_ = ends_.back();
  }

  Cycle period() const { return period_; }
  LinkLoad load_before(Cycle cycle) const { return {cycle / period_ * (period_ / 3) + cycle % period_ / 3, 7 * (cycle / period_)}; }
  std::vector<LinkLoad> loads_behind(Cycle cycle) const { return {load_before(cycle + 1)}; }

  /// From behind cycle `from`, where a period ends, to behind cycle `to`, where another does.
  void run(LoadWindows& windows, Cycle from, Cycle to) const {
    for (Cycle start = from; start < to; start += period_) {
      Cycle before = 0;
      for (const Cycle end : ends_) {
        sample(windows, start + end);
        const auto kind = before % 2 == 0 ? CycleKind::compute : CycleKind::idle;
        charge(windows, kind, start + before, start + end);
        before = end;
      }
    }
  }
  void finish(LoadWindows& windows, Cycle end) const {
    sample(windows, end);
    windows.end_at(end);
    sample(windows, end);
  }

 private:
  void charge(LoadWindows& windows, CycleKind kind, Cycle from, Cycle to) const {
    windows.charge(0, kind, from - std::min(from, lag_), to - std::min(to, lag_));
  }
  void sample(LoadWindows& windows, Cycle now) const {
    while (windows.next_sample() <= now) windows.sample({load_before(windows.next_sample())});
  }

  Cycle lag_;
  std::vector<Cycle> ends_;  ///< of what the tile does in a period
  Cycle period_ = 0;
};

TEST(LoadWindows, PeriodsThatComeAgainAreEnteredAtOnce) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(seed, "periods");
    const Repeated load(random);
    const Cycle period = load.period();
    const Cycle before = period * (1 + random.below(4)), times = random.below(2'000), after = period * random.below(30);
    const Cycle end = before + period * (1 + times) + after;
    LoadWindows full(1, 1), folded(1, 1);
    load.run(full, 0, end);
    load.finish(full, end);
    load.run(folded, 0, before);
    folded.begin_period(before, period, times, load.loads_behind(before));
    load.run(folded, before, before + period);
    folded.end_period(load.loads_behind(before + period));
    load.run(folded, before + period * (1 + times), end);
    load.finish(folded, end);
    const sim::WindowMeasurement expected = full.take(end), result = folded.take(end);
    ASSERT_EQ(result.length, expected.length) << "seed " << seed;
    ASSERT_EQ(result.tiles, expected.tiles) << "seed " << seed;
    for (std::size_t i = 0; i < expected.count; ++i) {
      ASSERT_EQ(result.links[i].busy, expected.links[i].busy) << "seed " << seed << ", window " << i;
      ASSERT_EQ(result.links[i].queued, expected.links[i].queued) << "seed " << seed << ", window " << i;
    }
  }
}

TEST(LoadWindows, MemoryIsBounded) {
  LoadWindows windows(2048, 8000);
  windows.charge(0, CycleKind::compute, 0, Cycle{1} << 40);
  windows.end_at(Cycle{1} << 40);
  windows.sample(std::vector<LinkLoad>(8000));
  const sim::WindowMeasurement result = windows.take(Cycle{1} << 40);
  EXPECT_LE(result.tiles.size() * sizeof(CyclesByKind) + result.links.size() * sizeof(LinkLoad),
            std::size_t{32} << 20);
  EXPECT_GE(result.count, 32U);
}

struct Recorded {
  topology::Mesh mesh;
  workloads::LoweredPlan plan;
  sim::Measurements result;
};

/// A plan with all axes of communication, two iterations, an SRAM that is waited for and packets that queue.
Recorded record(sim::SimulationOptions options, models::NetworkSpec network = {}) {
  workloads::LoweringFixture fixture;
  fixture.set_degrees(2, 2, 2);
  fixture.plan.zero = 1;
  fixture.training.iterations = 2;
  fixture.wafer.mesh.shape = {4, 4};
  fixture.wafer.sram.bandwidth = Bandwidth{Rational(64), true};
  Recorded recorded{fixture.mesh(), fixture.lower(), {}};
  options.record_activity = true;
  recorded.result = run_trace(recorded.mesh, models::resolve_hardware(fixture.wafer, {}, network),
                              recorded.plan.trace, options);
  return recorded;
}

CyclesByKind sum_of(const std::vector<CyclesByKind>& rows) {
  CyclesByKind sum{};
  for (const CyclesByKind& row : rows) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += row[i];
  }
  return sum;
}

void expect_windows_add_up(const sim::Measurements& result) {
  const sim::WindowMeasurement& windows = *result.windows;
  ASSERT_EQ(windows.count, ceil_div(result.cycles, windows.length));
  ASSERT_EQ(windows.tiles.size(), result.tiles.size() * windows.count);
  for (std::size_t tile = 0; tile < result.tiles.size(); ++tile) {
    const auto first = windows.tiles.begin() + static_cast<std::ptrdiff_t>(tile * windows.count);
    EXPECT_EQ(sum_of({first, first + static_cast<std::ptrdiff_t>(windows.count)}),
              sim::by_kind(result.tiles[tile].cycles));
    for (std::size_t i = 0; i < windows.count; ++i) {
      const CyclesByKind& cycles = windows.tiles[tile * windows.count + i];
      EXPECT_EQ(std::accumulate(cycles.begin(), cycles.end(), Cycle{0}),
                std::min(windows.length, result.cycles - i * windows.length));
    }
  }
  ASSERT_EQ(windows.links.size(), result.links.size() * windows.count);
  for (std::size_t link = 0; link < result.links.size(); ++link) {
    LinkLoad sum;
    for (std::size_t i = 0; i < windows.count; ++i) {
      const LinkLoad& load = windows.links[link * windows.count + i];
      EXPECT_LE(load.busy, windows.length);
      sum.busy += load.busy;
      sum.queued += load.queued;
    }
    EXPECT_EQ(sum.busy, result.links[link].busy);
    EXPECT_EQ(sum.queued, result.links[link].queued);
  }
}

TEST(Activity, AddsUpToWhatIsMeasured) {
  std::vector<sim::MessageRecord> messages;
  sim::SimulationOptions options;
  options.on_message = [&messages](const sim::MessageRecord& message) { messages.push_back(message); };
  const Recorded run = record(options);
  ASSERT_TRUE(run.result.activity.has_value());
  expect_windows_add_up(run.result);

  std::vector<bool> seen(4);
  for (const sim::TileMeasurement& tile : run.result.tiles) {
    if (seen[static_cast<std::size_t>(tile.group)]) continue;
    seen[static_cast<std::size_t>(tile.group)] = true;
    const sim::GroupBubbles& bubbles = run.result.activity->bubbles.at(static_cast<std::size_t>(tile.group));
    EXPECT_EQ(bubbles.group, tile.group);
    EXPECT_EQ(bubbles.stage, tile.stage);
    Cycle sum = 0;
    for (const sim::GroupBubbles::Span& span : bubbles.spans) sum += span.to - span.from;
    EXPECT_EQ(sum, tile.cycles.bubble);
  }

  CyclesByKind of_steps{};
  std::map<std::int32_t, Cycle> of_stage;
  for (const sim::StepCycles& step : run.result.activity->steps) {
    of_steps = sum_of({of_steps, step.cycles});
    of_stage[step.stage] += std::accumulate(step.cycles.begin(), step.cycles.end(), Cycle{0});
  }
  std::vector<CyclesByKind> of_tiles;
  std::map<std::int32_t, Cycle> expected_of_stage;
  for (const sim::TileMeasurement& tile : run.result.tiles) {
    of_tiles.push_back(sim::by_kind(tile.cycles));
    expected_of_stage[tile.stage] += run.result.cycles;
  }
  EXPECT_EQ(of_steps, sum_of(of_tiles));
  EXPECT_EQ(of_stage, expected_of_stage);

  Cycle matrix = 0;
  Cycle vector = 0;
  std::uint64_t flops = 0;
  for (const sim::OperationMeasurement& operation : run.result.activity->operations) {
    const bool is_matrix = operation.kind == workloads::OpKind::matrix;
    (is_matrix ? matrix : vector) += operation.cycles;
    if (is_matrix) flops += operation.count * operation.work.gemm.flops();
    EXPECT_FALSE(operation.steps.empty());
    EXPECT_LE(operation.shortest * operation.count, operation.cycles);
    EXPECT_GE(operation.longest * operation.count, operation.cycles);
  }
  Cycle matrix_busy = 0;
  Cycle vector_busy = 0;
  for (const sim::TileMeasurement& tile : run.result.tiles) {
    matrix_busy += tile.matrix_busy;
    vector_busy += tile.vector_busy;
  }
  EXPECT_EQ(matrix, matrix_busy);
  EXPECT_EQ(vector, vector_busy);
  EXPECT_EQ(flops, run.result.matrix_flops);

  std::map<workloads::Axis, std::uint64_t> count;
  std::map<workloads::Axis, Cycle> latency;
  for (const sim::MessageRecord& message : messages) {
    ++count[message.axis];
    latency[message.axis] += message.received - message.posted;
  }
  ASSERT_EQ(run.result.activity->messages.size(), count.size());
  for (const sim::MessageStatistics& axis : run.result.activity->messages) {
    EXPECT_EQ(axis.messages, count[axis.axis]);
    EXPECT_EQ(axis.latency_sum, latency[axis.axis]);
    std::uint64_t in_classes = 0;
    for (const CycleHistogram::Class& each : axis.latency.classes()) in_classes += each.count;
    EXPECT_EQ(in_classes, axis.messages);
  }
}

TEST(Activity, SpansOfATileAreItsCyclesAndItsMessages) {
  sim::SimulationOptions options;
  std::vector<sim::MessageRecord> messages;
  options.on_message = [&messages](const sim::MessageRecord& message) { messages.push_back(message); };
  options.activity_tiles = {1, 0, 1};
  const Recorded run = record(options);
  ASSERT_EQ(run.result.activity->tiles.size(), 2U);
  for (const sim::TileSpans& spans : run.result.activity->tiles) {
    EXPECT_TRUE(spans.complete);
    const auto tile = std::find_if(run.result.tiles.begin(), run.result.tiles.end(),
                                   [&](const sim::TileMeasurement& each) { return each.tile == spans.tile; });
    CyclesByKind sum{};
    Cycle at = 0;
    for (const sim::TileSpans::Span& span : spans.core) {
      EXPECT_EQ(span.from, at);
      at = span.to;
      sum[span.what] += span.to - span.from;
    }
    EXPECT_EQ(at, run.result.cycles);
    EXPECT_EQ(sum, sim::by_kind(tile->cycles));
    // A cycle is in a span of an axis if and only if one of the axis' messages is on its way in it.
    std::map<std::size_t, std::vector<bool>> flying, said;
    for (const sim::MessageRecord& message : messages) {
      if (message.source != spans.tile && message.destination != spans.tile) continue;
      std::vector<bool>& cycles = flying[static_cast<std::size_t>(message.axis)];
      cycles.resize(run.result.cycles);
      for (Cycle cycle = message.posted; cycle < message.received; ++cycle) cycles[cycle] = true;
    }
    for (const sim::TileSpans::Span& span : spans.messages) {
      std::vector<bool>& cycles = said[span.what];
      cycles.resize(run.result.cycles);
      for (Cycle cycle = span.from; cycle < span.to; ++cycle) {
        EXPECT_FALSE(cycles[cycle]) << "two spans of an axis overlap";
        cycles[cycle] = true;
      }
    }
    EXPECT_EQ(said, flying);
  }
}

/// A run that is cut short, in the middle of packets.
TEST(Activity, OfAPartialRunAddsUpToo) {
  sim::SimulationOptions options;
  options.max_cycles = 5'000;
  const Recorded run = record(options);
  ASSERT_TRUE(run.result.partial);
  expect_windows_add_up(run.result);
}

TEST(Activity, OfFlitsAddsUpToo) {
  models::NetworkSpec network;
  network.fidelity = models::Fidelity::flit;
  sim::SimulationOptions options;
  options.max_cycles = 20'000;
  expect_windows_add_up(record(options, network).result);
}

/// The flows across each link of the mesh carry what it carried.
TEST(HotFlows, AreTheBytesOfTheirLinks) {
  const Recorded run = record({});
  const auto routing = topology::make_routing("xy", run.mesh);
  std::vector<topology::LinkId> links;
  for (const sim::LinkMeasurement& link : run.result.links) links.push_back(link.link);
  const std::vector<analysis::LinkFlows> all =
      analysis::flows_across(run.plan.trace, *routing, run.mesh, links, 3);
  ASSERT_EQ(all.size(), run.result.links.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].link, links[i]);
    EXPECT_EQ(all[i].bytes, run.result.links[i].bytes);
    EXPECT_EQ(all[i].heaviest.size(), std::min<std::size_t>(all[i].flows, 3));
    EXPECT_TRUE(std::is_sorted(all[i].heaviest.begin(), all[i].heaviest.end(),
                               [](const auto& a, const auto& b) { return a.bytes > b.bytes; }));
  }
}

}  // namespace
}  // namespace wafersim::test
