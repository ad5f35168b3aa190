#include "topology/shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

namespace wafersim::topology {
namespace {

int hops(Coord a, Coord b) { return std::abs(a.x - b.x) + std::abs(a.y - b.y); }

/// Lengths of all steps of a closed walk, the last one back to the first position.
std::vector<int> steps(const std::vector<Coord>& cycle) {
  std::vector<int> lengths;
  for (std::size_t i = 0; i < cycle.size(); ++i)
    lengths.push_back(hops(cycle[i], cycle[(i + 1) % cycle.size()]));
  return lengths;
}

void expect_each_position_once(const std::vector<Coord>& positions, const Shape& shape) {
  std::set<std::pair<int, int>> seen;
  for (const Coord c : positions) {
    EXPECT_TRUE(c.x >= 0 && c.x < shape.cols && c.y >= 0 && c.y < shape.rows) << c.x << ", " << c.y;
    seen.insert({c.x, c.y});
  }
  EXPECT_EQ(positions.size(), static_cast<std::size_t>(shape.size()));
  EXPECT_EQ(seen.size(), positions.size());
}

class EveryShape : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  Shape shape() const { return {std::get<0>(GetParam()), std::get<1>(GetParam())}; }
};

TEST_P(EveryShape, RowMajorGoesRowByRow) {
  const auto positions = row_major(shape());
  expect_each_position_once(positions, shape());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(positions[i].y * shape().cols + positions[i].x), i);
  }
}

TEST_P(EveryShape, SnakeMovesOneHopAtATime) {
  const auto positions = snake(shape());
  expect_each_position_once(positions, shape());
  EXPECT_EQ(positions.front(), (Coord{0, 0}));
  for (std::size_t i = 1; i < positions.size(); ++i) EXPECT_EQ(hops(positions[i - 1], positions[i]), 1);
}

TEST_P(EveryShape, CycleVisitsEveryPositionWithTheBestClosure) {
  const CycleOrder cycle = hamiltonian_cycle(shape());
  expect_each_position_once(cycle.positions, shape());
  EXPECT_EQ(cycle.positions.front(), (Coord{0, 0}));

  const auto lengths = steps(cycle.positions);
  const auto two_hops = std::count(lengths.begin(), lengths.end(), 2);
  const int longest = *std::max_element(lengths.begin(), lengths.end());
  EXPECT_EQ(cycle.closing_hops, std::max(longest, 1));

  const bool line = shape().rows == 1 || shape().cols == 1;
  if (line) {
    EXPECT_EQ(cycle.closing_hops, shape().size() <= 2 ? 1 : 2);
    EXPECT_EQ(two_hops, std::max(shape().size() - 2, 0)) << "all but the two steps at the ends";
  } else if (shape().size() % 2 == 0) {
    EXPECT_EQ(cycle.closing_hops, 1);
  } else {
    EXPECT_EQ(cycle.closing_hops, 2);
    EXPECT_EQ(two_hops, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(UpTo8x8, EveryShape, testing::Combine(testing::Range(1, 9), testing::Range(1, 9)),
                         [](const auto& shape) {
                           return std::to_string(std::get<0>(shape.param)) + "x" +
                                  std::to_string(std::get<1>(shape.param));
                         });

TEST(Snake, TurnsAtEachEnd) {
  const std::vector<Coord> expected = {{0, 0}, {1, 0}, {2, 0}, {2, 1}, {1, 1}, {0, 1}};
  EXPECT_EQ(snake({2, 3}), expected);
}

TEST(HamiltonianCycle, FoldsALine) {
  const std::vector<Coord> row = {{0, 0}, {2, 0}, {4, 0}, {3, 0}, {1, 0}};
  EXPECT_EQ(hamiltonian_cycle({1, 5}).positions, row);
  const std::vector<Coord> column = {{0, 0}, {0, 2}, {0, 3}, {0, 1}};
  EXPECT_EQ(hamiltonian_cycle({4, 1}).positions, column);
  const CycleOrder closed = hamiltonian_cycle({1, 5}, true);
  EXPECT_EQ(closed.positions, row_major({1, 5}));
  EXPECT_EQ(closed.closing_hops, 1);
}

TEST(MostSquare, PrefersSquareThenWide) {
  const Shape wafer{32, 64};
  EXPECT_EQ(most_square(16, wafer), (Shape{4, 4}));
  EXPECT_EQ(most_square(32, wafer), (Shape{4, 8}));
  EXPECT_EQ(most_square(12, wafer), (Shape{3, 4}));
  EXPECT_EQ(most_square(7, wafer), (Shape{1, 7}));
  EXPECT_EQ(most_square(1, wafer), (Shape{1, 1}));
  EXPECT_EQ(most_square(2048, wafer), wafer);
}

TEST(MostSquare, StaysInside) {
  EXPECT_EQ(most_square(16, {2, 8}), (Shape{2, 8})) << "4x4 is too tall";
  EXPECT_EQ(most_square(12, {8, 3}), (Shape{4, 3})) << "only taller than wide fits";
  EXPECT_EQ(most_square(7, {8, 6}), (Shape{7, 1}));
}

TEST(MostSquare, IsEmptyWhenNothingFits) {
  EXPECT_EQ(most_square(11, {8, 8}), (Shape{0, 0})) << "a prime longer than both sides";
  EXPECT_EQ(most_square(65, {8, 8}), (Shape{0, 0}));
  EXPECT_EQ(most_square(0, {8, 8}), (Shape{0, 0}));
}

TEST(MostSquare, AgreesWithExhaustiveSearch) {
  for (int count = 1; count <= 64; ++count) {
    for (int rows = 1; rows <= 9; ++rows) {
      for (int cols = 1; cols <= 9; ++cols) {
        Shape best{0, 0};
        for (int r = 1; r <= rows; ++r) {  // ascending: of two equally square ones the wider comes first
          const Shape candidate{r, count / r};
          if (count % r != 0 || candidate.cols > cols) continue;
          const auto skew = [](const Shape& s) { return std::abs(s.rows - s.cols); };
          if (best.rows == 0 || skew(candidate) < skew(best)) best = candidate;
        }
        ASSERT_EQ(most_square(count, {rows, cols}), best) << count << " in " << rows << "x" << cols;
      }
    }
  }
}

}  // namespace
}  // namespace wafersim::topology
