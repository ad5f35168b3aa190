#include "topology/tile_distances.h"

namespace wafersim::topology {

const std::vector<TileId>& TileDistances::within(TileId tile, Coord low, Coord high) {
  const auto for_each = [&](const auto& visit) {
    for (int y = low.y; y <= high.y; ++y) {
      for (int x = low.x; x <= high.x; ++x) {
        const TileId other = mesh_.tile_at({x, y});
        visit(other, static_cast<std::size_t>(mesh_.distance(tile, other)));
      }
    }
  };
  first_.assign(static_cast<std::size_t>(mesh_.rows() + mesh_.cols()) + 1, 0);
  std::uint32_t count = 0;
  for_each([&](TileId, std::size_t distance) { ++first_[distance + 1], ++count; });
  for (std::size_t distance = 1; distance < first_.size(); ++distance)
    first_[distance] += first_[distance - 1];
  order_.resize(count);
  for_each([&](TileId other, std::size_t distance) { order_[first_[distance]++] = other; });
  return order_;
}

}  // namespace wafersim::topology
