#include "topology/multicast_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"

namespace wafersim::topology {
namespace {

constexpr OutputSet kLocal = output_bit(Hop::local);

/// The tree while its size is not known.
struct Branch {
  OutputSet outputs = 0;
  TileId parent = kNoTile;
};

}  // namespace

MulticastTree::MulticastTree(const Routing& routing, const Mesh& mesh, TileId source, std::span<const TileId> receivers)
    : source_(source), receivers_(receivers.begin(), receivers.end()), mesh_cols_(static_cast<TileId>(mesh.cols())) {
  if (receivers.empty()) throw PlanError(fmt::format("a multicast of {} has no receiver", mesh.name(source)));
  std::unordered_map<TileId, Branch> tree;
  tree[source];
  for (const TileId receiver : receivers_) {
    if (receiver == source) throw PlanError(fmt::format("a multicast of {} goes to itself", mesh.name(source)));
    TileId at = source;
    for (const LinkId link : route(routing, mesh, source, receiver)) {
      const Direction direction = Mesh::link_direction(link);
      const TileId next = mesh.neighbour(at, direction);
      const auto [entry, fresh] = tree.try_emplace(next);
      if (fresh) {
        entry->second.parent = at;
        ++links_;
      } else if (entry->second.parent != at) {
        throw PlanError(fmt::format(
            "router.routing: the routes of {} from {} part and meet again at {}, so routers cannot copy packets along them; "
            "valid for multicast: xy, yx",
            routing.name(), mesh.name(source), mesh.name(next)));
      }
      tree[at].outputs |= turn_bit(direction);
      at = next;
    }
    OutputSet& outputs = tree[receiver].outputs;
    if ((outputs & kLocal) != 0) {
      throw PlanError(fmt::format("a multicast of {} names {} twice", mesh.name(source), mesh.name(receiver)));
    }
    outputs |= kLocal;
  }

  Coord low = mesh.coord(source), high = low;
  for (const auto& [tile, branch] : tree) {
    const Coord at = mesh.coord(tile);
    low = {std::min(low.x, at.x), std::min(low.y, at.y)};
    high = {std::max(high.x, at.x), std::max(high.y, at.y)};
  }
  first_col_ = static_cast<TileId>(low.x);
  first_row_ = static_cast<TileId>(low.y);
  cols_ = static_cast<TileId>(high.x - low.x + 1);
  nodes_.resize(std::size_t{cols_} * static_cast<std::size_t>(high.y - low.y + 1));
  for (const auto& [tile, branch] : tree) nodes_[place(tile)].outputs = branch.outputs;
  for (std::uint32_t i = 0; i < receivers_.size(); ++i) nodes_[place(receivers_[i])].receiver = i;
}

std::size_t MulticastTree::place(TileId tile) const {
  // Tiles before the first row or column wrap to large numbers.
  const TileId row = tile / mesh_cols_ - first_row_;
  const TileId col = tile % mesh_cols_ - first_col_;
  const std::size_t at = std::size_t{row} * cols_ + col;
  return col < cols_ && at < nodes_.size() ? at : nodes_.size();
}

OutputSet MulticastTree::outputs(TileId tile) const {
  const std::size_t at = place(tile);
  return at < nodes_.size() ? nodes_[at].outputs : OutputSet{0};
}

std::uint32_t MulticastTree::receiver_at(TileId tile) const {
  const std::size_t at = place(tile);
  return at < nodes_.size() ? nodes_[at].receiver : kNone;
}

}  // namespace wafersim::topology
