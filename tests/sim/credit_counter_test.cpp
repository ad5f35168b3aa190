#include "sim/credits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "base/random.h"

namespace wafersim::sim {
namespace {

/// The same room by its definition: the capacity less what was taken, plus what has come back.
struct Model {
  Bytes room;
  std::deque<std::pair<Cycle, Bytes>> under_way;

  void advance(Cycle now) {
    for (; !under_way.empty() && under_way.front().first <= now; under_way.pop_front()) room += under_way.front().second;
  }
};

class CreditCounterTest : public ::testing::TestWithParam<std::uint64_t> {};

/// Packets of random sizes leave and their credits come back after random times, in order: from none to dozens are under way.
TEST_P(CreditCounterTest, HasRoomWhenTheCapacityLessWhatIsOutSaysSo) {
  RandomStream random(GetParam(), "credits");
  const Bytes capacity = 64 + random.below(2000);
  const Cycle longest = 1 + random.below(60);
  CreditPool pool;
  CreditCounter counter;
  counter.set_capacity(capacity);
  Model model{capacity, {}};
  std::deque<Bytes> downstream;  // taken, and no credit given yet
  Cycle now = 0;
  Cycle last_arrival = 0;
  for (int step = 0; step < 5000; ++step) {
    now += random.below(4);
    model.advance(now);
    if (!downstream.empty() && random.below(3) != 0) {
      last_arrival = std::max(last_arrival, now + 1 + random.below(longest));
      counter.give(downstream.front(), last_arrival, now, pool);
      model.under_way.emplace_back(last_arrival, downstream.front());
      downstream.pop_front();
    }
    const Bytes bytes = 1 + random.below(64);
    const bool room = counter.has_room(bytes, now, pool);
    ASSERT_EQ(room, model.room >= bytes) << "in cycle " << now;
    if (room) {
      counter.take(bytes);
      model.room -= bytes;
      downstream.push_back(bytes);
    } else {
      ASSERT_EQ(counter.next_arrival(now), model.under_way.empty() ? kNever : model.under_way.front().first);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, CreditCounterTest, ::testing::Range<std::uint64_t>(1, 21));

TEST(CreditCounterWaitTest, WhoeverWaitsIsToldOnce) {
  CreditCounter counter;
  EXPECT_FALSE(counter.stop_waiting());
  counter.wait();
  EXPECT_TRUE(counter.stop_waiting());
  EXPECT_FALSE(counter.stop_waiting());
}

}  // namespace
}  // namespace wafersim::sim
