#include "sim/memory_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/sim/machine.h"
#include "tests/workloads/lowering_fixture.h"

/// What a tile holds over time.
namespace wafersim::test {
namespace {

using sim::MemoryLevels;
using sim::MemoryRow;
using sim::MemoryTimeline;
using sim::MemoryWindows;

MemoryLevels levels(Bytes parameters, Bytes activations) {
  MemoryLevels result;
  result.by_class[0] = parameters;
  result.by_class[3] = activations;
  result.sram = parameters;
  result.dram = activations;
  result.total = parameters + activations;
  return result;
}

/// What is held at the end of each cycle, as rows say it: exactly, or at most.
std::vector<MemoryLevels> by_cycle(const std::vector<MemoryRow>& rows, Cycle end) {
  std::vector<MemoryLevels> result(end + 1);
  std::size_t row = 0;
  for (Cycle cycle = 0; cycle <= end; ++cycle) {
    while (row + 1 < rows.size() && rows[row + 1].cycle <= cycle) ++row;
    result[cycle] = rows[row].levels;
  }
  return result;
}

TEST(MemoryTimeline, ChangesThatFitAreExact) {
  MemoryTimeline timeline(levels(10, 0), 100);
  timeline.change(0, levels(10, 0));  // none
  timeline.change(3, levels(10, 5));
  timeline.change(9, levels(10, 2));
  timeline.change(12, levels(10, 0));
  const std::vector<MemoryRow> rows = timeline.rows(20);
  ASSERT_EQ(rows.size(), 5U);
  const Cycle cycles[] = {0, 3, 9, 12, 20};
  const Bytes totals[] = {10, 15, 12, 10, 10};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].cycle, cycles[i]);
    EXPECT_EQ(rows[i].window, 1U);
    EXPECT_EQ(rows[i].levels.total, totals[i]);
  }
}

/// A peak in a window is not what is held after it.
TEST(MemoryTimeline, AWindowsPeakEndsWithIt) {
  MemoryTimeline timeline(levels(0, 0), 4);
  for (const Cycle cycle : {0, 1, 2, 3, 4}) timeline.change(cycle, levels(0, cycle == 4 ? 1 : 10 + cycle));
  const std::vector<MemoryRow> rows = timeline.rows(1000);
  ASSERT_GT(rows[1].window, 1U);
  const std::vector<MemoryLevels> held = by_cycle(rows, 1000);
  EXPECT_EQ(held[3].total, 13U);
  EXPECT_EQ(held[4 + rows[1].window].total, 1U);
  EXPECT_EQ(held[1000].total, 1U);
}

/// Random levels at random cycles: few rows, never below what is held, equal to the largest of each window, and exact
/// where nothing happens for two windows.
TEST(MemoryTimeline, WindowsHaveTheLargestLevelsOfTheirCycles) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomStream random(seed, "timeline");
    const std::size_t most = 4 + random.below(30);
    const Cycle sparse = 1 + random.below(40);
    MemoryTimeline timeline(levels(7, 3), most);
    std::vector<MemoryLevels> held;
    MemoryLevels now = levels(7, 3);
    for (Cycle cycle = 0; cycle < 2000; ++cycle) {
      if (random.below(sparse) == 0) {
        now = levels(random.below(100), random.below(100));
        timeline.change(cycle, now);
      }
      held.push_back(now);
    }
    const std::vector<MemoryRow> rows = timeline.rows(1999);
    EXPECT_LE(rows.size(), most + 2);
    EXPECT_EQ(rows.front().levels, levels(7, 3));
    EXPECT_EQ(rows.back().levels, now);
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                               [](const MemoryRow& a, const MemoryRow& b) { return a.cycle < b.cycle; }));
    const Cycle window = rows.size() > 2 ? rows[1].window : 1;
    const std::vector<MemoryRow> inner(rows.begin(), rows.end() - 1);
    const std::vector<MemoryLevels> said = by_cycle(inner, 1999);
    for (Cycle first = 0; first < 2000; first += window) {
      MemoryLevels highest = held[first];
      for (Cycle cycle = first; cycle < std::min<Cycle>(first + window, 2000); ++cycle) {
        highest = largest(highest, held[cycle]);
        EXPECT_EQ(said[cycle], said[first]);
      }
      EXPECT_EQ(said[first], highest) << "seed " << seed << ", window " << window << " at " << first;
    }
  }
}

void expect_same(const std::vector<MemoryRow>& a, const std::vector<MemoryRow>& b, std::uint64_t seed) {
  ASSERT_EQ(a.size(), b.size()) << "seed " << seed;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].cycle, b[i].cycle) << "seed " << seed << ", row " << i;
    EXPECT_EQ(a[i].window, b[i].window) << "seed " << seed << ", row " << i;
    EXPECT_EQ(a[i].levels, b[i].levels) << "seed " << seed << ", row " << i;
  }
}

/// Levels of all sizes, split in any way, at cycles near and far.
struct RandomChanges {
  RandomStream random;
  MemoryLevels levels;
  Cycle cycle = 0;

  Bytes size() { return random.below(Bytes{1} << random.below(50)); }
  void next() {
    cycle += 1 + random.below(Cycle{1} << random.below(40));
    const std::size_t changed = random.below(workloads::kMemoryClasses);
    for (std::size_t i = 0; i <= changed; ++i) levels.by_class[random.below(levels.by_class.size())] = size();
    levels.total = std::accumulate(levels.by_class.begin(), levels.by_class.end(), Bytes{0});
    levels.sram = random.below(levels.total + 1);
    levels.dram = levels.total - levels.sram;
  }
};

/// Rows are those of the changes, whether these were kept or were too many, and where periods come again those of every
/// repetition entered by itself.
TEST(MemoryTimeline, HasTheRowsOfItsChanges) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomChanges changes{RandomStream(seed, "changes"), {}, 0};
    changes.next();
    RandomStream& random = changes.random;
    const std::size_t most = 2 + random.below(std::size_t{1} << random.below(7));
    MemoryTimeline timeline(changes.levels, most);
    MemoryWindows all(changes.levels, most);
    const auto change = [&] {
      timeline.change(changes.cycle, changes.levels);
      all.change(changes.cycle, changes.levels);
    };
    for (std::uint64_t stretch = random.below(6); stretch != 0; --stretch) {
      for (std::uint64_t left = random.below(60); left != 0; --left) {
        changes.next();
        change();
      }
      timeline.begin_period();
      const Cycle begun = changes.cycle;
      if (random.below(2) == 0) {  // what it had already
        ++changes.cycle;
        change();
      }
      std::vector<std::pair<Cycle, MemoryLevels>> inside;
      if (changes.cycle != begun) inside.emplace_back(changes.cycle, changes.levels);
      for (std::uint64_t left = random.below(40); left != 0; --left) {
        changes.next();
        change();
        inside.emplace_back(changes.cycle, changes.levels);
      }
      if (random.below(4) == 0) {
        timeline.drop_period();
        continue;
      }
      const Cycle length = changes.cycle - begun + 1 + random.below(100);
      const std::uint64_t times = random.below(20);
      timeline.end_period(length, times);
      for (std::uint64_t k = 1; k <= times; ++k) {
        for (const auto& [cycle, levels] : inside) all.change(cycle + length * k, levels);
      }
      changes.cycle += length * times;
    }
    expect_same(timeline.rows(changes.cycle + 10), all.rows(changes.cycle + 10), seed);
  }
}

workloads::LoweringFixture training_plan() {
  workloads::LoweringFixture fixture;
  fixture.set_degrees(2, 2, 2);
  fixture.plan.zero = 2;
  fixture.wafer.mesh.shape = {4, 4};
  return fixture;
}

/// The largest row of a tile is its peak, and the end is the start.
TEST(MemoryOverTime, HasThePeaksOfItsTileAndReturnsToItsBase) {
  const workloads::LoweringFixture fixture = training_plan();
  const topology::Mesh mesh = fixture.mesh();
  const workloads::LoweredPlan lowered = fixture.lower();
  sim::SimulationOptions options;
  options.record_memory = true;
  options.memory_tiles = {lowered.trace.tiles[2].tile};
  const sim::Measurements result =
      run_trace(mesh, models::resolve_hardware(fixture.wafer, {}, {}), lowered.trace, options);
  ASSERT_GE(result.memory.size(), 2U);
  ASSERT_LE(result.memory.size(), 3U);
  Bytes fullest = 0, emptiest = ~Bytes{0};
  bool named = false;
  for (const sim::TileMemory& memory : result.memory) {
    const auto tile = std::find_if(result.tiles.begin(), result.tiles.end(),
                                   [&](const sim::TileMeasurement& each) { return each.tile == memory.tile; });
    ASSERT_NE(tile, result.tiles.end());
    named = named || memory.tile == options.memory_tiles[0];
    fullest = std::max(fullest, tile->peak_bytes);
    emptiest = std::min(emptiest, tile->peak_bytes);
    MemoryLevels highest;
    for (const MemoryRow& row : memory.rows) {
      EXPECT_EQ(row.window, 1U);
      EXPECT_EQ(row.levels.total, row.levels.sram + row.levels.dram);
      Bytes sum = 0;
      for (const Bytes bytes : row.levels.by_class) sum += bytes;
      EXPECT_EQ(row.levels.total, sum);
      highest = largest(highest, row.levels);
    }
    EXPECT_EQ(highest.by_class, tile->peak_by_class);
    EXPECT_EQ(highest.total, tile->peak_bytes);
    EXPECT_EQ(highest.sram, tile->peak_sram_bytes);
    EXPECT_EQ(memory.rows.front().levels, memory.rows.back().levels);
    EXPECT_EQ(memory.rows.front().levels.total, tile->static_bytes);
    EXPECT_EQ(memory.rows.back().cycle, result.cycles);
    EXPECT_GT(memory.rows.size(), 20U);
  }
  EXPECT_TRUE(named);
  for (const sim::TileMeasurement& tile : result.tiles) {
    EXPECT_LE(tile.peak_bytes, fullest);
    EXPECT_GE(tile.peak_bytes, emptiest);
  }
}

}  // namespace
}  // namespace wafersim::test
