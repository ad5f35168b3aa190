#include "topology/shapes.h"

#include <algorithm>
#include <cstdlib>

namespace wafersim::topology {
namespace {

int hops(Coord a, Coord b) { return std::abs(a.x - b.x) + std::abs(a.y - b.y); }

int longest_step(const std::vector<Coord>& cycle) {
  int longest = 1;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    longest = std::max(longest, hops(cycle[i], cycle[(i + 1) % cycle.size()]));
  }
  return longest;
}

void transpose(std::vector<Coord>& positions) {
  for (Coord& c : positions) std::swap(c.x, c.y);
}

/// 0, 2, 4, ..., 5, 3, 1 along one row.
std::vector<Coord> folded_line(int length) {
  std::vector<Coord> line;
  for (int x = 0; x < length; x += 2) line.push_back({x, 0});
  for (int x = length - 1; x > 0; --x) {
    if (x % 2 == 1) line.push_back({x, 0});
  }
  return line;
}

/// A Hamiltonian cycle of an even number of rows and at least two columns: boustrophedon over all columns but
/// the first, which is the way back. It walks the whole last row from east to west.
std::vector<Coord> cycle_of_even_rows(int rows, int cols) {
  std::vector<Coord> cycle = {{0, 0}};
  for (int y = 0; y < rows; ++y) {
    for (int step = 1; step < cols; ++step) cycle.push_back({y % 2 == 0 ? step : cols - step, y});
  }
  for (int y = rows - 1; y > 0; --y) cycle.push_back({0, y});
  return cycle;
}

/// Odd x odd, both >= 3: the cycle of all rows but the last, whose westward walk along row rows-2 makes a
/// detour into the last row over each pair of columns (2k, 2k-1). The south-west corner is left and sits
/// behind the one step of 2 hops.
std::vector<Coord> cycle_of_odd_sides(int rows, int cols) {
  std::vector<Coord> cycle;
  const int last = rows - 1;
  for (const Coord c : cycle_of_even_rows(rows - 1, cols)) {
    const bool detour = c.y == last - 1 && c.x > 0;
    if (detour && c.x % 2 == 1) cycle.push_back({c.x, last});
    if (c == Coord{0, last - 1}) cycle.push_back({0, last});
    cycle.push_back(c);
    if (detour && c.x % 2 == 0) cycle.push_back({c.x, last});
  }
  return cycle;
}

std::vector<Coord> cycle_positions(const Shape& shape) {
  if (shape.rows == 1) return folded_line(shape.cols);
  if (shape.rows % 2 == 0 && shape.cols >= 2) return cycle_of_even_rows(shape.rows, shape.cols);
  if (shape.cols >= 3 && shape.cols % 2 == 1) return cycle_of_odd_sides(shape.rows, shape.cols);
  // A single column, or an odd number of rows with an even number of columns.
  std::vector<Coord> positions = cycle_positions({shape.cols, shape.rows});
  transpose(positions);
  return positions;
}

bool fits(const Shape& shape, const Shape& within) {
  return shape.rows <= within.rows && shape.cols <= within.cols;
}

}  // namespace

std::vector<Coord> row_major(const Shape& shape) {
  std::vector<Coord> positions;
  positions.reserve(static_cast<std::size_t>(shape.size()));
  for (int y = 0; y < shape.rows; ++y) {
    for (int x = 0; x < shape.cols; ++x) positions.push_back({x, y});
  }
  return positions;
}

std::vector<Coord> snake(const Shape& shape) {
  std::vector<Coord> positions = row_major(shape);
  for (Coord& c : positions) {
    if (c.y % 2 == 1) c.x = shape.cols - 1 - c.x;
  }
  return positions;
}

CycleOrder hamiltonian_cycle(const Shape& shape, bool closed) {
  CycleOrder order;
  if (closed && (shape.rows == 1 || shape.cols == 1)) {
    order.positions = row_major(shape);
    return order;
  }
  order.positions = cycle_positions(shape);
  order.closing_hops = longest_step(order.positions);
  return order;
}

Shape most_square(int count, const Shape& within) {
  Shape best{0, 0};
  for (int side = 1; side <= count / side; ++side) {
    if (count % side != 0) continue;
    const Shape wide{side, count / side};
    const Shape tall{count / side, side};
    if (fits(wide, within)) {
      best = wide;
    } else if (fits(tall, within)) {
      best = tall;
    }
  }
  return best;
}

}  // namespace wafersim::topology
