#include "analysis/message_board.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "base/random.h"

namespace wafersim::test {
namespace {

/// Against a queue for each key, over several rounds of the same board.
TEST(MessageBoard, IsAQueueForEachKey) {
  RandomStream random(7, "message board");
  analysis::MessageBoard<int> board;
  for (const std::uint64_t keys : {3U, 5000U, 40U}) {
    board.clear();
    std::map<std::uint64_t, std::deque<int>> queues;
    for (int step = 0; step < 20000; ++step) {
      const std::uint64_t key = random.below(keys) * 0x100000001ULL;  // halves that are alike
      std::deque<int>& queue = queues[key];
      if (random.below(2) == 0) {
        board.push(key, step);
        queue.push_back(step);
        continue;
      }
      const bool wanted = random.below(4) != 0;
      const auto taken = board.pop_if(key, [wanted](int) { return wanted; });
      ASSERT_EQ(taken.has_value(), wanted && !queue.empty());
      if (!taken) continue;
      ASSERT_EQ(*taken, queue.front());
      queue.pop_front();
    }
  }
}

}  // namespace
}  // namespace wafersim::test
