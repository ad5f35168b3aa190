#include "report/timeline_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "report/run_directory.h"
#include "tests/report/run_fixture.h"
#include "tests/sim/isolated.h"
#include "tests/sim/machine.h"
#include "tests/workloads/lowering_fixture.h"

/// What stands in the timeline of a run is what the run measured, in the form that viewers read.
namespace wafersim::report {
namespace {

using nlohmann::json;
using testing::TestDirectory;
using workloads::LoweringFixture;

std::string gunzipped(const std::filesystem::path& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (int count = 1; count > 0;) {
    count = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()));
    EXPECT_GE(count, 0) << "it is no complete gzip file";
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  gzclose(file);
  return text;
}

/// Two replicas of two stages of two tiles each, all axes of communication, an SRAM that is waited for.
struct Case {
  LoweringFixture fixture;
  models::NetworkSpec network;
  Bytes most_bytes = kTimelineBytes;
  std::vector<TileId> tiles;  ///< none: all used ones

  Case() {
    fixture.set_degrees(2, 2, 2);
    fixture.plan.zero = 1;
    fixture.training.iterations = 2;
    fixture.wafer.mesh.shape = {4, 4};
    fixture.wafer.sram.bandwidth = Bandwidth{Rational(64), true};
    fixture.wafer.clock.hertz = Rational(1'280'000'000);  // a cycle has 0.00078125 us
  }
};

struct Recorded {
  sim::Measurements result;
  std::vector<sim::MessageRecord> messages;
  std::string text;
  json timeline;
  std::optional<Cycle> recorded_before;
  std::vector<TileId> tiles;
  topology::Mesh mesh;
};

/// One call in a process.
Recorded record(const Case& of) {
  const TestDirectory directory;
  const topology::Mesh mesh = of.fixture.mesh();
  const workloads::LoweredPlan plan = of.fixture.lower();
  const models::HardwareModel hardware = models::resolve_hardware(of.fixture.wafer, {}, of.network);
  std::vector<TileId> tiles = of.tiles;
  if (tiles.empty()) {
    for (const workloads::TileBinding& binding : plan.trace.tiles) tiles.push_back(binding.tile);
  }
  const std::string name = "a \"quoted\" name";
  TimelineFile file(directory.path() / kTimelineFile, {name, hardware, mesh, plan.trace}, tiles, of.most_bytes);
  Recorded recorded{{}, {}, {}, {}, {}, tiles, mesh};
  sim::SimulationOptions options;
  options.record_links = true;
  options.on_message = [&](const sim::MessageRecord& message) { recorded.messages.push_back(message); };
  options.observer = {tiles, [&](const sim::OperationRecord& operation) { file.add(operation); },
                      [&](TileId tile, Cycle cycle, const sim::MemoryLevels& levels) { file.add(tile, cycle, levels); },
                      [&](const sim::MessageRecord& message) { file.add(message); }};
  recorded.result = test::run_trace(mesh, hardware, plan.trace, options);
  EXPECT_FALSE(std::filesystem::exists(directory.path() / kTimelineFile)) << "before it is complete";
  file.commit(recorded.result);
  recorded.recorded_before = file.recorded_before();
  recorded.text = gunzipped(directory.path() / kTimelineFile);
  recorded.timeline = json::parse(recorded.text);
  return recorded;
}

using TrackId = std::pair<int, int>;
TrackId track_of(const json& event) { return {event.at("pid").get<int>(), event.at("tid").get<int>()}; }

std::map<TrackId, std::string> track_names(const json& timeline) {
  std::map<TrackId, std::string> names;
  for (const json& event : timeline["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") names[track_of(event)] = event["args"]["name"];
  }
  return names;
}

struct Slice {
  Cycle start = 0;
  Cycle end = 0;
};
std::map<std::string, std::vector<Slice>> slices_by_track(const json& timeline) {
  const std::map<TrackId, std::string> names = track_names(timeline);
  std::map<std::string, std::vector<Slice>> slices;
  for (const json& event : timeline["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const Cycle start = event["args"]["start_cycle"];
    slices[names.at(track_of(event))].push_back({start, start + event["args"]["cycles"].get<Cycle>()});
  }
  return slices;
}

constexpr double kCycleMicroseconds = 0.00078125;

/// That many cycles in microseconds, with all digits.
std::string exact_time(Cycle cycle) {
  const Cycle hundred_millionths = cycle * 78'125;
  std::string fraction = std::to_string(hundred_millionths % 100'000'000);
  fraction.insert(0, 8 - fraction.size(), '0');
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return std::to_string(hundred_millionths / 100'000'000) + (fraction.empty() ? "" : "." + fraction);
}

/// The keys that the format asks for in each phase, names of all processes and threads, and slices that do not overlap.
void expect_well_formed(const json& timeline) {
  EXPECT_EQ(timeline.at("displayTimeUnit"), "ns");
  std::set<int> processes;
  std::set<TrackId> threads;
  std::map<TrackId, double> last_end;
  std::map<std::pair<int, std::string>, double> last_count;
  for (const json& event : timeline.at("traceEvents")) {
    const std::string phase = event.at("ph");
    ASSERT_TRUE(event.at("name").is_string() && event.at("pid").is_number_integer()) << event;
    ASSERT_GT(event["pid"].get<int>(), 0);
    if (phase == "M") {
      ASSERT_TRUE(event.at("args").is_object());
      if (event["name"] == "process_name") processes.insert(event["pid"].get<int>());
      if (event["name"] == "thread_name") threads.insert(track_of(event));
      continue;
    }
    ASSERT_TRUE(processes.contains(event["pid"].get<int>())) << event;
    const double at = event.at("ts");
    ASSERT_GE(at, 0);
    if (phase == "C") {
      for (const auto& [series, value] : event.at("args").items()) ASSERT_TRUE(value.is_number()) << series;
      double& before = last_count[{event["pid"].get<int>(), event["name"].get<std::string>()}];
      ASSERT_GE(at, before) << event;
      before = at;
      continue;
    }
    ASSERT_TRUE(threads.contains(track_of(event))) << event;
    if (phase == "X") {
      double& before = last_end[track_of(event)];
      ASSERT_GE(at, before - 1e-9) << event;
      before = at + event.at("dur").get<double>();
      const auto& args = event.at("args");
      ASSERT_NEAR(at, args.at("start_cycle").get<double>() * kCycleMicroseconds, 1e-8);
      ASSERT_NEAR(event["dur"].get<double>(), args.at("cycles").get<double>() * kCycleMicroseconds, 1e-8);
    } else {
      ASSERT_TRUE(phase == "s" || phase == "f") << event;
      ASSERT_TRUE(event.at("id").is_number_integer() && event.at("cat").is_string()) << event;
      if (phase == "f") {
        ASSERT_EQ(event.at("bp"), "e");
      }
    }
  }
}

/// Every arrow has one start and one later end, each within a slice of its track.
void expect_arrows_join(const json& timeline) {
  std::map<TrackId, std::vector<std::pair<double, double>>> slices;
  std::map<int, std::vector<const json*>> arrows;
  for (const json& event : timeline["traceEvents"]) {
    if (event["ph"] == "X") {
      slices[track_of(event)].emplace_back(event["ts"].get<double>(), event["ts"].get<double>() + event["dur"].get<double>());
    }
    if (event["ph"] == "s" || event["ph"] == "f") arrows[event["id"].get<int>()].push_back(&event);
  }
  ASSERT_FALSE(arrows.empty());
  for (const auto& [id, ends] : arrows) {
    ASSERT_EQ(ends.size(), 2U) << id;
    EXPECT_EQ((*ends[0])["ph"], "s");
    EXPECT_EQ((*ends[1])["ph"], "f");
    EXPECT_EQ((*ends[0])["cat"], (*ends[1])["cat"]);
    EXPECT_LE((*ends[0])["ts"].get<double>(), (*ends[1])["ts"].get<double>());
    for (const json* end : ends) {
      const double at = (*end)["ts"];
      const auto& track = slices[track_of(*end)];
      EXPECT_TRUE(std::any_of(track.begin(), track.end(), [&](const auto& slice) { return slice.first <= at && at < slice.second; }))
          << *end;
    }
  }
}

TEST(TimelineFile, EnginesAreBusyAsMeasured) {
  const Recorded run = record({});
  auto slices = slices_by_track(run.timeline);
  for (const sim::TileMeasurement& tile : run.result.tiles) {
    for (const auto& [engine, busy] : {std::pair{" matrix", tile.matrix_busy}, std::pair{" vector", tile.vector_busy}}) {
      Cycle sum = 0;
      Cycle last = 0;
      for (const Slice& slice : slices[run.mesh.name(tile.tile) + engine]) {
        EXPECT_GE(slice.start, last);
        EXPECT_GT(slice.end, slice.start);
        last = slice.end;
        sum += slice.end - slice.start;
      }
      EXPECT_GT(busy, 0U);
      EXPECT_EQ(sum, busy) << run.mesh.name(tile.tile) << engine;
    }
  }
}

TEST(TimelineFile, FollowsTheFormat) {
  const Recorded run = record({});
  expect_well_formed(run.timeline);
  expect_arrows_join(run.timeline);
  EXPECT_EQ(run.timeline["otherData"],
            json({{"scenario", "a \"quoted\" name"},
                  {"wafersim_version", run.timeline["otherData"]["wafersim_version"]},
                  {"clock_hz", "1280000000"},
                  {"tiles", run.tiles.size()},
                  {"cycles", run.result.cycles},
                  {"complete", true},
                  {"recorded_before_cycle", nullptr}}));
  std::set<std::string> stages;
  std::set<std::string> names;
  for (const json& event : run.timeline["traceEvents"]) {
    if (event["name"] == "process_name") stages.insert(event["args"]["name"].get<std::string>());
    names.insert(event["name"].get<std::string>());
  }
  EXPECT_EQ(stages, (std::set<std::string>{"stage 0", "stage 1"}));
  EXPECT_TRUE(names.contains("layer 0 forward mb 0: matrix"));
  EXPECT_TRUE(names.contains("layer 0 backward mb 0: reduce tp"));
}

TEST(TimelineFile, TimesHaveAllTheirDigits) {
  const Recorded run = record({});
  std::istringstream lines(run.text);
  std::size_t slices = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("{\"ph\":\"X\"")) continue;
    ++slices;
    if (line.back() == ',') line.pop_back();
    const json args = json::parse(line)["args"];
    const std::string expected = ",\"ts\":" + exact_time(args["start_cycle"]) + ",\"dur\":" + exact_time(args["cycles"]) + ",";
    EXPECT_NE(line.find(expected), std::string::npos) << expected << " in " << line;
  }
  EXPECT_GT(slices, 100U);
}

TEST(TimelineFile, EveryMessageIsAtBothOfItsEnds) {
  const Recorded run = record({});
  std::map<std::string, std::vector<std::pair<Cycle, Cycle>>> expected;
  std::uint64_t arrows = 0;
  for (const sim::MessageRecord& message : run.messages) {
    const std::string axis = workloads::to_string(message.axis);
    expected[run.mesh.name(message.source) + " " + axis + " to " + run.mesh.name(message.destination)].emplace_back(
        message.posted, message.received);
    expected[run.mesh.name(message.destination) + " " + axis + " from " + run.mesh.name(message.source)].emplace_back(
        message.posted, message.received);
    ++arrows;
  }
  const auto names = track_names(run.timeline);
  std::map<std::string, std::vector<std::pair<Cycle, Cycle>>> found;
  for (const json& event : run.timeline["traceEvents"]) {
    if (event["ph"] == "s") --arrows;
    if (event["ph"] != "X" || !event["args"].contains("bytes")) continue;
    const std::string track = names.at(track_of(event));
    const Cycle start = event["args"]["start_cycle"];
    found[track.substr(0, track.find(' ') + 1) + event["name"].get<std::string>()].emplace_back(
        start, start + event["args"]["cycles"].get<Cycle>());
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(arrows, 0U);
}

TEST(TimelineFile, LanesAreAsManyAsMessagesInFlight) {
  const Recorded run = record({});
  const auto slices = slices_by_track(run.timeline);
  for (const TileId tile : run.tiles) {
    std::map<Cycle, int> changes;
    for (const sim::MessageRecord& message : run.messages) {
      if (message.source != tile && message.destination != tile) continue;
      ++changes[message.posted];
      --changes[message.received];
    }
    int now = 0;
    int most = 0;
    for (const auto& [cycle, change] : changes) most = std::max(most, now += change);
    const auto lanes = std::count_if(slices.begin(), slices.end(), [&](const auto& track) {
      return track.first.starts_with(run.mesh.name(tile) + " nic ");
    });
    EXPECT_EQ(lanes, most) << run.mesh.name(tile);
  }
}

TEST(TimelineFile, MemoryIsThatOfTheTile) {
  const Recorded run = record({});
  for (const sim::TileMeasurement& tile : run.result.tiles) {
    std::vector<Bytes> levels;
    for (const json& event : run.timeline["traceEvents"]) {
      if (event["ph"] == "C" && event["name"] == run.mesh.name(tile.tile) + " memory") levels.push_back(event["args"]["sram"]);
    }
    ASSERT_GT(levels.size(), 2U);
    EXPECT_EQ(levels.front(), tile.static_bytes);
    EXPECT_EQ(levels.back(), tile.final_bytes);
    EXPECT_EQ(*std::max_element(levels.begin(), levels.end()), tile.peak_sram_bytes);
  }
}

/// The loads of each link that leads away from a chosen tile, over the windows that end by `end`, are the cycles in which it was
/// busy.
void expect_loads_add_up(const Recorded& run, Cycle end) {
  std::map<std::string, std::vector<std::pair<double, double>>> loads;  // by counter: from when, how much
  for (const json& event : run.timeline["traceEvents"]) {
    if (event["ph"] != "C" || !event["args"].contains("percent")) continue;
    loads[event["name"]].emplace_back(event["ts"].get<double>() / kCycleMicroseconds, event["args"]["percent"].get<double>());
  }
  const sim::WindowMeasurement& windows = *run.result.windows;
  std::size_t expected = 0;
  for (std::size_t place = 0; place < run.result.links.size(); ++place) {
    const topology::LinkId link = run.result.links[place].link;
    if (std::find(run.tiles.begin(), run.tiles.end(), topology::Mesh::link_source(link)) == run.tiles.end()) continue;
    ++expected;
    const auto& changes = loads[run.mesh.link_name(link) + " busy"];
    double sum = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const bool last = i + 1 == changes.size();
      EXPECT_TRUE(!last || changes[i].second == 0) << "a counter ends with the run";
      EXPECT_GE(changes[i].second, 0);
      EXPECT_LE(changes[i].second, 100);
      if (!last) sum += changes[i].second / 100 * (changes[i + 1].first - changes[i].first);
    }
    Cycle busy = 0;  // in windows that end by `end`
    for (std::size_t window = 0; window < windows.count; ++window) {
      const Cycle to = std::min(windows.length * (window + 1), run.result.cycles);
      if (to <= end) busy += windows.links[place * windows.count + window].busy;
    }
    EXPECT_NEAR(sum, static_cast<double>(busy), 0.0005 * static_cast<double>(run.result.cycles) + 1);
    EXPECT_TRUE(end != run.result.cycles || busy == run.result.links[place].busy);
  }
  EXPECT_GT(expected, 0U);
  EXPECT_EQ(loads.size(), expected);
}

TEST(TimelineFile, LoadsOfLinksAreThoseOfTheRun) {
  for (const std::vector<TileId>& tiles : {std::vector<TileId>{}, std::vector<TileId>{0, 5}}) {
    const std::string fault = test::isolated_text([&]() -> std::string {
      Case of;
      of.tiles = tiles;
      const Recorded run = record(of);
      expect_loads_add_up(run, run.result.cycles);
      return ::testing::Test::HasFailure() ? "see above" : "";
    });
    EXPECT_EQ(fault, "");
  }
}

TEST(TimelineFile, TheBoundHoldsAndSaysWhatIsMissing) {
  Case of;
  of.most_bytes = 100'000;
  const Recorded run = record(of);
  EXPECT_LE(run.text.size(), of.most_bytes);
  EXPECT_GT(run.text.size(), of.most_bytes * 7 / 8 - 4'000) << "an eighth is for loads of links";
  expect_well_formed(run.timeline);
  expect_arrows_join(run.timeline);
  ASSERT_TRUE(run.recorded_before.has_value());
  expect_loads_add_up(run, *run.recorded_before);
  EXPECT_GT(*run.recorded_before, 0U);
  EXPECT_LT(*run.recorded_before, run.result.cycles);
  EXPECT_EQ(run.timeline["otherData"]["complete"], false);
  EXPECT_EQ(run.timeline["otherData"]["recorded_before_cycle"], *run.recorded_before);
  std::uint64_t messages = 0;
  for (const sim::MessageRecord& message : run.messages) messages += message.received < *run.recorded_before ? 2 : 0;
  std::uint64_t found = 0;
  for (const json& event : run.timeline["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const Cycle end = event["args"]["start_cycle"].get<Cycle>() + event["args"]["cycles"].get<Cycle>();
    EXPECT_LE(end, *run.recorded_before);
    if (event["args"].contains("bytes") && end < *run.recorded_before) ++found;
  }
  EXPECT_EQ(found, messages) << "all that were received before are there";
}

TEST(TimelineFile, NoBoundIsPassed) {
  for (const Bytes bound : {kLeastTimelineBytes, Bytes{70'001}, Bytes{150'000}}) {
    const std::string fault = test::isolated_text([&]() -> std::string {
      Case of;
      of.fixture.set_degrees(2, 2, 4);
      of.most_bytes = bound;
      const Recorded run = record(of);
      expect_well_formed(run.timeline);
      EXPECT_LE(run.text.size(), bound);
      return ::testing::Test::HasFailure() ? "see above" : "";
    });
    EXPECT_EQ(fault, "") << bound;
  }
}

TEST(TimelineFile, OtherTilesAreLeftOut) {
  Case of;
  of.tiles = {5, 0};
  const Recorded run = record(of);
  expect_well_formed(run.timeline);
  for (const auto& [track, name] : track_names(run.timeline)) {
    EXPECT_TRUE(name.starts_with(run.mesh.name(0) + " ") || name.starts_with(run.mesh.name(5) + " ")) << name;
  }
}

TEST(TimelineFile, NetworksOfFlitsAndWithoutTime) {
  for (const models::Fidelity fidelity : {models::Fidelity::flit, models::Fidelity::ideal}) {
    const std::string fault = test::isolated_text([&]() -> std::string {
      Case of;
      of.network.fidelity = fidelity;
      const Recorded run = record(of);
      expect_well_formed(run.timeline);
      if (fidelity == models::Fidelity::flit) expect_arrows_join(run.timeline);
      return ::testing::Test::HasFailure() ? "see above" : "";
    });
    EXPECT_EQ(fault, "");
  }
}

TEST(TimelineFile, RecordingChangesNoResult) {
  const auto numbers = [](bool observed) {
    return test::isolated_text([observed] {
      const Case of;
      sim::SimulationOptions options;
      options.fold = false;
      std::uint64_t operations = 0;
      if (observed) {
        options.observer = {{0, 1}, [&operations](const sim::OperationRecord&) { ++operations; }, nullptr, nullptr};
      }
      const auto result = test::run_trace(of.fixture.mesh(), models::resolve_hardware(of.fixture.wafer, {}, of.network),
                                          of.fixture.lower().trace, options);
      if (observed != (operations > 0)) return std::string("no operation was seen");
      std::string text = std::to_string(result.cycles) + " " + std::to_string(result.engine.events);
      for (const sim::TileMeasurement& tile : result.tiles) {
        text += " " + std::to_string(tile.matrix_busy) + " " + std::to_string(tile.communicating) + " " +
                std::to_string(tile.cycles.exposed_total());
      }
      return text;
    });
  };
  EXPECT_EQ(numbers(true), numbers(false));
}

}  // namespace
}  // namespace wafersim::report
