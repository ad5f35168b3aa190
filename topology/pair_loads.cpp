#include "topology/pair_loads.h"

#include <utility>

#include "base/error.h"

namespace wafersim::topology {
namespace {

/// Dimension order without faults, in coordinates (i, j) along the first and the second dimension. Every
/// link's load is the bytes of those who send over it, times those who receive, plus the other way round.
class StraightPairs {
 public:
  StraightPairs(const Mesh& mesh, Dimension first, const std::vector<Bytes>& from,
                const std::vector<Bytes>& to)
      : mesh_(mesh), x_first_(first == Dimension::x), from_(from), to_(to) {
    firsts_ = static_cast<Bytes>(x_first_ ? mesh.cols() : mesh.rows());
    seconds_ = static_cast<Bytes>(x_first_ ? mesh.rows() : mesh.cols());
  }

  LinkBytes loads() const {
    LinkBytes loads(mesh_.link_slots(), 0);
    load_first_dimension(loads);
    load_second_dimension(loads);
    return loads;
  }

 private:
  TileId tile(Bytes i, Bytes j) const {
    const auto a = static_cast<int>(i), b = static_cast<int>(j);
    return mesh_.tile_at(x_first_ ? Coord{a, b} : Coord{b, a});
  }
  LinkId link(Bytes i, Bytes j, bool along_x, bool up) const {
    using enum Direction;
    return Mesh::link(tile(i, j), along_x ? (up ? east : west) : (up ? south : north));
  }

  /// Between i and i + 1: senders are the tiles of the same j behind the link, receivers all lines i before
  /// it.
  void load_first_dimension(LinkBytes& loads) const {
    std::vector<Bytes> received(firsts_ + 1, 0);  // by lines 0 .. i - 1
    for (Bytes i = 0; i < firsts_; ++i) {
      received[i + 1] = received[i];
      for (Bytes j = 0; j < seconds_; ++j) received[i + 1] += to_[tile(i, j)];
    }
    for (Bytes j = 0; j < seconds_; ++j) {
      Bytes all = 0, sent = 0;
      for (Bytes i = 0; i < firsts_; ++i) all += from_[tile(i, j)];
      for (Bytes i = 0; i + 1 < firsts_; ++i) {
        const Bytes below = i + 1, above = firsts_ - below;
        sent += from_[tile(i, j)];
        loads[link(i, j, x_first_, true)] =
            sent * above * seconds_ + below * (received[firsts_] - received[below]);
        loads[link(i + 1, j, x_first_, false)] = (all - sent) * below * seconds_ + above * received[below];
      }
    }
  }

  /// Between j and j + 1: receivers are the tiles of the same i before the link, senders all lines j behind
  /// it.
  void load_second_dimension(LinkBytes& loads) const {
    std::vector<Bytes> sent(seconds_ + 1, 0);  // by lines 0 .. j - 1
    for (Bytes j = 0; j < seconds_; ++j) {
      sent[j + 1] = sent[j];
      for (Bytes i = 0; i < firsts_; ++i) sent[j + 1] += from_[tile(i, j)];
    }
    for (Bytes i = 0; i < firsts_; ++i) {
      Bytes all = 0, received = 0;
      for (Bytes j = 0; j < seconds_; ++j) all += to_[tile(i, j)];
      for (Bytes j = 0; j + 1 < seconds_; ++j) {
        const Bytes below = j + 1, above = seconds_ - below;
        received += to_[tile(i, j)];
        loads[link(i, j, !x_first_, true)] = sent[below] * above + firsts_ * below * (all - received);
        loads[link(i, j + 1, !x_first_, false)] =
            (sent[seconds_] - sent[below]) * below + firsts_ * above * received;
      }
    }
  }

  const Mesh& mesh_;
  bool x_first_;
  const std::vector<Bytes>& from_;
  const std::vector<Bytes>& to_;
  Bytes firsts_ = 0;
  Bytes seconds_ = 0;
};

/// The routes to one destination form a tree: what its tiles send is added up from the leaves.
class RouteTree {
 public:
  RouteTree(const Routing& routing, const Mesh& mesh)
      : routing_(routing),
        mesh_(mesh),
        link_(mesh.tile_count()),
        children_(mesh.tile_count()),
        bytes_(mesh.tile_count()) {}

  void add(TileId destination, const std::vector<Bytes>& from, Bytes each, LinkBytes& loads) {
    grow(destination);
    for (TileId tile = 0; tile < mesh_.tile_count(); ++tile) bytes_[tile] = from[tile] + each;
    for (TileId leaf = 0; leaf < mesh_.tile_count(); ++leaf) {
      // A tile with children is passed on from the last of them.
      for (TileId at = leaf; mesh_.has_router(at) && at != destination && children_[at] == 0;) {
        const TileId parent = mesh_.neighbour(at, Mesh::link_direction(link_[at]));
        loads[link_[at]] += bytes_[at];
        bytes_[parent] += bytes_[at];
        children_[at] = kDone;
        --children_[parent];
        at = parent;
      }
    }
  }

 private:
  static constexpr std::uint8_t kDone = 0xff;

  void grow(TileId destination) {
    std::fill(children_.begin(), children_.end(), std::uint8_t{0});
    for (TileId at = 0; at < mesh_.tile_count(); ++at) {
      if (!mesh_.has_router(at) || at == destination) continue;
      const std::optional<Direction> direction = to_direction(routing_.next(at, destination));
      if (!direction) {
        route(routing_, mesh_, at, destination);  // says why
        throw InternalError("a route is blocked for pair_loads() only");
      }
      link_[at] = Mesh::link(at, *direction);
      ++children_[mesh_.neighbour(at, *direction)];
    }
  }

  const Routing& routing_;
  const Mesh& mesh_;
  std::vector<LinkId> link_;            ///< by tile: the link of its route
  std::vector<std::uint8_t> children_;  ///< whose routes come here and are not added up yet
  std::vector<Bytes> bytes_;
};

}  // namespace

std::vector<Bytes> live_bytes(const Mesh& mesh, Bytes bytes) {
  std::vector<Bytes> by_tile(mesh.tile_count(), 0);
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    if (mesh.alive(tile)) by_tile[tile] = bytes;
  }
  return by_tile;
}

namespace {

/// Bytes of one tile for each tile of a router, summed over those that share a router.
std::vector<Bytes> by_router(const Mesh& mesh, std::vector<Bytes> bytes) {
  if (!mesh.concentrated()) return bytes;
  const auto sharing = static_cast<Bytes>(mesh.concentration().size());
  for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
    const Bytes of_tile = std::exchange(bytes[tile], 0);  // a router goes by the first of its tiles
    bytes[mesh.router(tile)] += of_tile * sharing;
  }
  return bytes;
}

}  // namespace

LinkBytes pair_loads(const Routing& routing, const Mesh& mesh, const std::vector<Bytes>& from,
                     const std::vector<Bytes>& to) {
  if (const auto first = routing.straight_first()) return StraightPairs(mesh, *first, from, to).loads();
  const std::vector<Bytes> sent = by_router(mesh, from), received = by_router(mesh, to);
  LinkBytes loads(mesh.link_slots(), 0);
  RouteTree tree(routing, mesh);
  for (TileId destination = 0; destination < mesh.tile_count(); ++destination) {
    if (mesh.has_router(destination)) tree.add(destination, sent, received[destination], loads);
  }
  return loads;
}

}  // namespace wafersim::topology
