#pragma once

#include "base/random.h"
#include "topology/mesh.h"

namespace wafersim::topology {

/// A mesh of up to 12x12 with up to `max_percent` of its tiles and of its links dead, the same for the same
/// seed.
inline MeshSpec random_faulty_mesh(std::uint64_t seed, int max_percent = 25) {
  RandomStream random(seed, "faults");
  const auto below = [&random](int bound) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
  };
  MeshSpec spec;
  spec.shape = {2 + below(11), 2 + below(11)};
  const int percent_tiles = below(max_percent + 1);
  const int percent_links = below(max_percent + 1);
  for (int y = 0; y < spec.shape.rows; ++y) {
    for (int x = 0; x < spec.shape.cols; ++x) {
      if (below(100) < percent_tiles) spec.dead_tiles.push_back({x, y});
      if (x + 1 < spec.shape.cols && below(100) < percent_links)
        spec.dead_links.push_back({{x, y}, {x + 1, y}});
      if (y + 1 < spec.shape.rows && below(100) < percent_links)
        spec.dead_links.push_back({{x, y}, {x, y + 1}});
    }
  }
  return spec;
}

}  // namespace wafersim::topology
