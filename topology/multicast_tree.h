#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "topology/mesh.h"
#include "topology/routing.h"

namespace wafersim::topology {

/// The way of a packet that goes from one tile to several: the routes to all of them, merged, so that a link that is on
/// several routes is crossed once. Routers on the way copy the packet where routes part.
///
/// Turns of the tree are turns of the routes, so packets that are held whole in each router's buffer and leave it branch by
/// branch, each when there is room behind it, wait for no other channels than packets of one receiver do: what is free of
/// deadlock for them is so for trees.
class MulticastTree {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// Throws PlanError when there is no receiver, a receiver is the source or listed twice, no live way leads to one, or two
  /// routes meet again after they have parted (routes of one source have to form a tree; those of dimension order do).
  MulticastTree(const Routing& routing, const Mesh& mesh, TileId source, std::span<const TileId> receivers);

  TileId source() const { return source_; }
  const std::vector<TileId>& receivers() const { return receivers_; }
  /// By which outputs a packet leaves the router of `tile`, `local` among others where it is a receiver; none off the tree.
  OutputSet outputs(TileId tile) const;
  /// Which of the receivers `tile` is; kNone when it is none.
  std::uint32_t receiver_at(TileId tile) const;
  /// Links that the packet crosses.
  std::size_t link_count() const { return links_; }

 private:
  struct Node {
    OutputSet outputs = 0;
    std::uint32_t receiver = kNone;
  };
  /// Place in nodes_, or its size outside the rectangle.
  std::size_t place(TileId tile) const;

  TileId source_;
  std::vector<TileId> receivers_;
  std::size_t links_ = 0;
  // The smallest rectangle around the tree, row by row.
  TileId mesh_cols_;
  TileId first_col_ = 0;
  TileId first_row_ = 0;
  TileId cols_ = 0;
  std::vector<Node> nodes_;
};

}  // namespace wafersim::topology
