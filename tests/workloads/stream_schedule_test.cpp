#include "workloads/stream_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "tests/models/csv_table.h"

namespace wafersim::workloads {
namespace {

constexpr StreamVariant kVariants[] = {StreamVariant::flood, StreamVariant::wrapped_ring,
                                       StreamVariant::interleaved_ring};

struct Counts {
  int rounds = 0;
  int block_hops = 0;
  int busiest_link_blocks = 0;  ///< of a link and direction
  int longest_hops = 0;
  int max_waiting_blocks = 0;  ///< arrived and not used, of any member, while one block a round is used
};

Counts count(StreamVariant variant, int members) {
  Counts counts;
  std::map<std::pair<int, int>, int> links;
  std::vector<std::vector<int>> arrivals(static_cast<std::size_t>(members), std::vector<int>(1, 1));
  for (const StreamTransfer& transfer : stream_transfers(variant, StreamRelay::cut_through, members)) {
    counts.rounds = std::max(counts.rounds, transfer.round + 2);
    counts.longest_hops = std::max(counts.longest_hops, std::abs(transfer.to - transfer.from));
    const int step = transfer.to > transfer.from ? 1 : -1;
    for (int at = transfer.from; at != transfer.to; at += step) {
      ++counts.block_hops;
      counts.busiest_link_blocks = std::max(counts.busiest_link_blocks, ++links[{at, at + step}]);
    }
    std::vector<int>& of = arrivals[static_cast<std::size_t>(transfer.to)];
    of.resize(static_cast<std::size_t>(transfer.round) + 2, 0);
    ++of.back();
  }
  for (const std::vector<int>& of : arrivals) {
    int arrived = 0, used = 0;
    for (const int more : of) {
      arrived += more;
      counts.max_waiting_blocks = std::max(counts.max_waiting_blocks, arrived - ++used);
    }
  }
  return counts;
}

TEST(StreamSchedule, CountsEqualTheReferenceTable) {
  const std::vector<test::CsvRow> rows = test::read_reference("tatp_line.csv");
  ASSERT_FALSE(rows.empty());
  for (const test::CsvRow& row : rows) {
    const auto at = [&](const char* column) { return std::stoi(row.at(column)); };
    const int members = at("tiles");
    const Counts flood = count(StreamVariant::flood, members);
    EXPECT_EQ(flood.rounds, at("rounds")) << members;
    EXPECT_EQ(flood.block_hops, at("block_hops")) << members;
    EXPECT_EQ(flood.busiest_link_blocks, at("busiest_link_blocks")) << members;
    EXPECT_EQ(flood.max_waiting_blocks, at("max_waiting_blocks")) << members;
    EXPECT_EQ(flood.longest_hops, 1) << members;
    const Counts wrapped = count(StreamVariant::wrapped_ring, members);
    EXPECT_EQ(wrapped.block_hops, at("wrapped_ring_block_hops")) << members;
    EXPECT_EQ(wrapped.longest_hops, at("wrapped_ring_longest_hops")) << members;
    EXPECT_LE(count(StreamVariant::interleaved_ring, members).longest_hops, at("interleaved_ring_longest_hops"));
  }
}

TEST(StreamSchedule, EveryBlockVisitsEveryMemberOnceInAnOrderInWhichItCanCome) {
  for (const StreamVariant variant : kVariants) {
    for (const StreamRelay relay : {StreamRelay::cut_through, StreamRelay::store_and_forward}) {
      for (const int members : {1, 2, 3, 4, 5, 8, 13, 16}) {
        std::set<std::pair<int, int>> has;  // member, owner: from the round after
        for (int member = 0; member < members; ++member) has.emplace(member, member);
        int round = 0;
        std::set<std::pair<int, int>> arriving, passing;
        for (const StreamTransfer& transfer : stream_transfers(variant, relay, members)) {
          ASSERT_GE(transfer.round, round);
          if (transfer.round > round) {
            has.insert(arriving.begin(), arriving.end());
            round = transfer.round;
            ASSERT_TRUE(passing.empty()) << "what passes a member leaves it in the same round";
          }
          const std::pair here{transfer.from, transfer.owner}, there{transfer.to, transfer.owner};
          if (transfer.starts) {
            ASSERT_TRUE(has.contains(here));
          } else {
            ASSERT_EQ(passing.erase(here), 1U);
          }
          if (relay == StreamRelay::store_and_forward) {
            ASSERT_EQ(std::abs(transfer.to - transfer.from), 1);
          }
          ASSERT_TRUE((transfer.passing ? passing : arriving).insert(there).second);
        }
        has.insert(arriving.begin(), arriving.end());
        EXPECT_EQ(has.size(), static_cast<std::size_t>(members) * static_cast<std::size_t>(members));
        for (int member = 0; member < members; ++member) {
          std::vector<int> order = stream_order(variant, members, member);
          EXPECT_EQ(order.front(), member);
          std::sort(order.begin(), order.end());
          ASSERT_EQ(order.size(), static_cast<std::size_t>(members));
          for (int owner = 0; owner < members; ++owner) EXPECT_EQ(order[static_cast<std::size_t>(owner)], owner);
        }
      }
    }
  }
}

}  // namespace
}  // namespace wafersim::workloads
