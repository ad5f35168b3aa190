#include "topology/even_split.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/error.h"
#include "topology/blocked_way.h"
#include "topology/tile_distances.h"

namespace wafersim::topology {
namespace {

constexpr std::size_t kOrigins = kDirections + 1;  ///< of a packet: the directions, and its source

class EvenSplit {
 public:
  EvenSplit(const RoutingPolicy& policy, const Mesh& mesh)
      : policy_(policy),
        mesh_(mesh),
        order_(mesh),
        waiting_(mesh.tile_count()),
        loads_(mesh.link_slots(), 0) {}

  /// Demands of one destination, between routers.
  void add(Demands::const_iterator first, Demands::const_iterator last) {
    const TileId destination = first->destination;
    Coord low = mesh_.coord(destination), high = low;
    for (auto demand = first; demand != last; ++demand) {
      waiting_[demand->source][kDirections] += demand->bytes;
      const Coord at = mesh_.coord(demand->source);
      low = {std::min(low.x, at.x), std::min(low.y, at.y)};
      high = {std::max(high.x, at.x), std::max(high.y, at.y)};
    }
    // Minimal routes do not leave the rectangle, and each hop brings them nearer.
    const std::vector<TileId>& order = order_.within(destination, low, high);
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      for (std::size_t origin = 0; origin < kOrigins; ++origin) {
        const Bytes bytes = std::exchange(waiting_[*at][origin], 0);
        if (bytes > 0 && *at != destination) split(*at, static_cast<Hop>(origin), destination, bytes);
      }
    }
  }

  LinkBytes take_loads() { return std::move(loads_); }

 private:
  void split(TileId at, Hop came, TileId destination, Bytes bytes) {
    const OutputSet outputs = policy_.outputs(at, came, {destination});
    require_invariant(outputs != 0, "an adaptive policy leads into a dead end");
    const auto ways = static_cast<Bytes>(std::popcount(outputs));
    Bytes left_over = bytes % ways;
    for (const Direction out : kAllDirections) {
      if ((outputs & turn_bit(out)) == 0) continue;
      const Bytes share = bytes / ways + (left_over > 0 ? 1 : 0);
      left_over -= left_over > 0 ? 1 : 0;
      loads_[Mesh::link(at, out)] += share;
      waiting_[mesh_.neighbour(at, out)][static_cast<std::size_t>(out)] += share;
    }
  }

  const RoutingPolicy& policy_;
  const Mesh& mesh_;
  TileDistances order_;
  std::vector<std::array<Bytes, kOrigins>> waiting_;  ///< by tile and by how they came
  LinkBytes loads_;
};

}  // namespace

LinkBytes even_split_loads(const RoutingPolicy& policy, const Mesh& mesh, const Demands& demands_in) {
  for (const Demand& demand : demands_in) require_live_ends(policy, mesh, demand.source, demand.destination);
  Demands demands = merged(between_routers(mesh, demands_in));
  std::stable_sort(demands.begin(), demands.end(),
                   [](const Demand& a, const Demand& b) { return a.destination < b.destination; });
  EvenSplit split(policy, mesh);
  for (auto first = demands.cbegin(); first != demands.cend();) {
    const auto last = std::find_if(first, demands.cend(), [&](const Demand& demand) {
      return demand.destination != first->destination;
    });
    split.add(first, last);
    first = last;
  }
  return split.take_loads();
}

}  // namespace wafersim::topology
