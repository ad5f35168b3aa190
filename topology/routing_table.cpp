#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "topology/routing_policies.h"

namespace wafersim::topology {
namespace {

/// The table holds a byte for each pair of tiles: 4 GiB at this size.
constexpr TileId kMaxTableTiles = 65'536;

constexpr bool horizontal(Hop hop) { return axis_of(static_cast<Direction>(hop)) == Dimension::x; }

/// Shortest live paths that go up any number of links and then down any number, never up again. Since every
/// link of a route's second half leads to a higher rank and every link of its first half to a lower one, no
/// cycle of links can wait for itself (up*/down*, Schroeder et al., Autonet, 1991).
///
/// The rule depends on whether a packet has gone down yet; next(at, destination) does not know. So a tile with
/// a downward path takes it, which keeps a packet that goes down going down, and the other tiles take the parent
/// nearest to the destination. On a mesh both are the shortest that the rule permits: a downward path, all links
/// on it being one level each, is as long as the difference of the levels. Rings of odd length have links within
/// a level, and a downward path may then be longer than one that first goes up. Ties go along x first. The root reaches everything in its part
/// downwards, so live tiles that are connected always have a route.
class TableRouting final : public Routing {
 public:
  TableRouting(const Mesh& mesh, const UpDownOrder& order) : mesh_(mesh), tiles_(mesh.tile_count()) {
    if (tiles_ > kMaxTableTiles) {
      throw PlanError(
          fmt::format("'routing: table' keeps a byte for each pair of tiles and takes at most {} tiles; "
                      "the {} mesh has {}",
                      kMaxTableTiles, to_string(mesh.shape()), tiles_));
    }
    hops_.assign(std::size_t{tiles_} * tiles_, Hop::unreachable);
    std::vector<std::uint32_t> lengths(tiles_, kNoPath);
    for (const RankRange& part : order.parts()) {
      for (std::uint32_t target = part.begin; target < part.end; ++target) {
        fill_routes_to(target, part, order, lengths);
      }
    }
  }

  const std::string& name() const override {
    static const std::string text = "table";
    return text;
  }

  Hop next(TileId at, TileId destination) const override {
    return hops_[std::size_t{mesh_.router(destination)} * tiles_ + at];
  }

 private:
  static constexpr std::uint32_t kNoPath = std::numeric_limits<std::uint32_t>::max();

  /// `lengths`, by rank, is scratch: the length of the route from each tile of the part.
  void fill_routes_to(std::uint32_t target, const RankRange& part, const UpDownOrder& order,
                      std::vector<std::uint32_t>& lengths) {
    Hop* const hops = hops_.data() + std::size_t{order.tile(target)} * tiles_;
    std::fill(lengths.begin() + part.begin, lengths.begin() + part.end, kNoPath);
    hops[order.tile(target)] = Hop::local;
    lengths[target] = 0;
    spread_downward_paths(target, part, order, lengths, hops);
    climb_where_no_path_descends(part, order, lengths, hops);
  }

  /// From the destination up: every ancestor goes down to a child on the way.
  static void spread_downward_paths(std::uint32_t target, const RankRange& part, const UpDownOrder& order,
                                    std::vector<std::uint32_t>& lengths, Hop* hops) {
    for (std::uint32_t child = target + 1; child-- > part.begin;) {
      if (lengths[child] == kNoPath) continue;
      const auto [first, last] = order.up_links(child);
      for (const UpLink* up = first; up != last; ++up) {
        const Hop down = to_hop(opposite(up->direction));
        const std::uint32_t length = lengths[child] + 1, known = lengths[up->parent];
        if (length > known || (length == known && !horizontal(down))) continue;
        lengths[up->parent] = length;
        hops[order.tile(up->parent)] = down;
      }
    }
  }

  /// From the root down: parents are settled before their children.
  static void climb_where_no_path_descends(const RankRange& part, const UpDownOrder& order,
                                           std::vector<std::uint32_t>& lengths, Hop* hops) {
    for (std::uint32_t child = part.begin; child < part.end; ++child) {
      if (lengths[child] != kNoPath) continue;
      const auto [first, last] = order.up_links(child);
      const UpLink* best = first;
      for (const UpLink* up = first; up != last; ++up) {
        if (lengths[up->parent] < lengths[best->parent]) best = up;
      }
      lengths[child] = lengths[best->parent] + 1;
      hops[order.tile(child)] = to_hop(best->direction);
    }
  }

  const Mesh& mesh_;
  TileId tiles_;
  std::vector<Hop> hops_;  ///< by destination's router, then by tile
};

}  // namespace

std::unique_ptr<Routing> make_table_routing(const Mesh& mesh) {
  return make_table_routing(mesh, UpDownOrder(mesh, roots_near_corners(mesh)));
}

std::unique_ptr<Routing> make_table_routing(const Mesh& mesh, const UpDownOrder& order) {
  return std::make_unique<TableRouting>(mesh, order);
}

}  // namespace wafersim::topology
