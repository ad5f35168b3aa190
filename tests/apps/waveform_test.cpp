#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>

#include "tests/apps/program.h"

namespace wafersim::testing {
namespace {

const std::string kBookSim = std::string(WAFERSIM_SOURCE_DIR) + "/scenarios/traffic/booksim2.yaml";

/// A VCD file: each signal's value from the times on at which it changes.
class Waves {
 public:
  explicit Waves(const std::string& text) {
    std::istringstream words(text);
    std::string word;
    std::string scope;
    std::map<std::string, std::string> names;
    std::uint64_t now = 0;
    while (words >> word) {
      if (word == "$scope") {
        words >> word >> word;
        scope = word;
      } else if (word == "$var") {
        std::string type, bits, id, name;
        words >> type >> bits >> id >> name;
        names[id] = scope + "." + name;
      } else if (word[0] == '#') {
        const std::uint64_t at = std::stoull(word.substr(1));
        EXPECT_GE(at, now) << "times ascend";
        now = at;
      } else if (word[0] == 'b') {
        std::string id;
        words >> id;
        changes_[names.at(id)][now] = std::stoull(word.substr(1), nullptr, 2);
      } else if ((word[0] == '0' || word[0] == '1') && names.contains(word.substr(1))) {
        changes_[names.at(word.substr(1))][now] = word[0] - '0';
      }
    }
  }

  std::uint64_t at(const std::string& signal, std::uint64_t time) const {
    return std::prev(changes_.at(signal).upper_bound(time))->second;
  }
  /// Cycles in which a signal of one bit is 1.
  std::uint64_t cycles(const std::string& signal) const {
    std::uint64_t sum = 0;
    std::uint64_t since = 0;
    std::uint64_t value = 0;
    for (const auto& [time, next] : changes_.at(signal)) {
      sum += value * (time - since);
      since = time;
      value = next;
    }
    EXPECT_EQ(value, 0U) << signal << " is 1 in the end";
    return sum;
  }

 private:
  std::map<std::string, std::map<std::uint64_t, std::uint64_t>> changes_;
};

// Pipeline p5 (route, VC, switch, traversal, link of a cycle each): what is made in cycle t is in its router at t + 2 and is granted
// the switch at t + 4, in the next router five cycles later; the place that it left is known upstream two cycles after the grant. The
// packet of tile_1_0 is made such that both want its output east in cycle 9: west goes before local.
TEST(Waveform, ShowsTwoFlitsThatMeetToTheCycle) {
  const Workplace work;
  work.write("packets.csv", "0,tile_0_0,tile_2_0,4\n5,tile_1_0,tile_2_0,4\n");
  const Outcome outcome = work.wafersim("traffic " + kBookSim +
                                        " --set traffic.pattern=trace --set traffic.file=packets.csv --vcd w.vcd "
                                        "--vcd-routers 'tile_0-1_0'");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Waves waves(work.read("w.vcd"));
  const auto expect_pulse = [&](const std::string& signal, std::uint64_t from, std::uint64_t to) {
    EXPECT_EQ(waves.at(signal, from - 1), 0U) << signal;
    EXPECT_EQ(waves.at(signal, from), 1U) << signal;
    EXPECT_EQ(waves.at(signal, to - 1), 1U) << signal;
    EXPECT_EQ(waves.at(signal, to), 0U) << signal;
    EXPECT_EQ(waves.cycles(signal), to - from) << signal;
  };
  expect_pulse("tile_0_0.input_local_vc0_flits", 2, 4);
  expect_pulse("tile_0_0.output_east_grant", 4, 5);
  expect_pulse("tile_1_0.input_west_vc0_flits", 7, 9);
  expect_pulse("tile_1_0.input_local_vc0_flits", 7, 10);
  expect_pulse("tile_1_0.output_east_grant", 9, 11);
  EXPECT_EQ(waves.at("tile_0_0.output_east_vc0_credits", 3), 8U);
  EXPECT_EQ(waves.at("tile_0_0.output_east_vc0_credits", 4), 7U);
  EXPECT_EQ(waves.at("tile_0_0.output_east_vc0_credits", 10), 7U);
  EXPECT_EQ(waves.at("tile_0_0.output_east_vc0_credits", 11), 8U);
  EXPECT_EQ(waves.cycles("tile_0_0.output_local_grant"), 0U);
}

/// Column `column` of the row of links.csv that starts with `link`.
std::uint64_t cell(const std::string& csv, const std::string& link, const std::string& column) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  std::istringstream header(line);
  std::size_t index = 0;
  for (std::string name; std::getline(header, name, ',') && name != column; ++index) {
  }
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::string value;
    std::getline(cells, value, ',');
    if (value != link) continue;
    for (std::size_t i = 0; i < index; ++i) std::getline(cells, value, ',');
    return std::stoull(value);
  }
  ADD_FAILURE() << link << " is not in links.csv";
  return 0;
}

// Of packets each grant is one packet of links.csv; afterwards all buffers are empty and all credits back.
TEST(Waveform, GrantsOfARunAreThePacketsOfItsLinks) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  const Outcome outcome = work.wafersim("run s.yaml -o out --quiet --vcd w.vcd --vcd-routers 'tile_*_*' --set network.packet_bytes='1 KiB'");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Waves waves(work.read("w.vcd"));
  const std::string links = work.read("out/links.csv");
  const std::uint64_t end = ~std::uint64_t{0} - 1;
  std::uint64_t packets = 0;
  for (const auto& [tile, output, link] :
       {std::array<std::string, 3>{"tile_0_0", "east", "tile_0_0>tile_1_0"}, {"tile_1_1", "west", "tile_1_1>tile_0_1"},
        {"tile_0_1", "north", "tile_0_1>tile_0_0"}}) {
    packets += cell(links, link, "packets");
    EXPECT_EQ(waves.cycles(tile + ".output_" + output + "_grant"), cell(links, link, "packets")) << link;
    const std::string credits = tile + ".output_" + output + "_vc0_credit_bytes";
    EXPECT_EQ(waves.at(credits, end), waves.at(credits, 0));
    EXPECT_GT(waves.at(credits, 0), 0U);
    EXPECT_EQ(waves.at(tile + ".input_west_vc0_packets", end), 0U);
    EXPECT_EQ(waves.at(tile + ".input_west_vc0_bytes", end), 0U);
  }
  EXPECT_GT(packets, 0U);
}

TEST(Waveform, RoutersAreNamedAndThere) {
  const Workplace work;
  work.write("s.yaml", kSmallScenario);
  for (const char* routers : {"tile_9_9", "tile_0", "router_0_0", "tile_1-_0"}) {
    const Outcome outcome = work.wafersim(std::string("run s.yaml -o out --vcd w.vcd --vcd-routers ") + routers);
    EXPECT_EQ(outcome.status, 2) << routers;
    EXPECT_NE(outcome.err.find(std::string("--vcd-routers: '") + routers + "' names no live tile"), std::string::npos)
        << outcome.err;
  }
  EXPECT_EQ(work.wafersim("run s.yaml -o out --vcd w.vcd").status, 2);
  EXPECT_EQ(work.wafersim("run s.yaml -o out --vcd w.vcd --vcd-routers tile_0_0 --set network.fidelity=ideal").status, 2);
  EXPECT_FALSE(work.has("w.vcd"));
}

}  // namespace
}  // namespace wafersim::testing
