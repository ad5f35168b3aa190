#pragma once

#include <map>
#include <optional>
#include <vector>

#include "topology/link_loads.h"

namespace wafersim::topology {

/// The hops towards one destination, by tile.
using HopRow = std::vector<Hop>;

/// Moves routes of known traffic within one set of turns; the algorithm is described at balance_routes().
class RouteBalancer {
 public:
  /// `start` gives the first routes, which keep to `turns`; every demand has a route by it. `demands` as
  /// merged() returns them. All must outlive the balancer.
  RouteBalancer(const Mesh& mesh, const Routing& start, const TurnSets& turns, const Demands& demands);

  /// Moves routes off the most loaded link until none can move.
  void run();
  /// Moves routes off all links, the most loaded first, which makes room for further moves of run(); ends
  /// when the largest load is `bound`. Keeps the routes that it found unless the new ones are better.
  void refine(Bytes bound);

  const LinkBytes& loads() const { return loads_; }
  /// The trees of the destinations whose routes were moved.
  std::map<TileId, HopRow> take_rows() { return std::move(rows_); }

 private:
  using FlowId = std::uint32_t;
  using Path = std::vector<LinkId>;
  struct Flow {
    Demand demand;
    int longest = 0;  ///< hops that its route may have
    Path path;
  };
  /// The flows of one destination that cross a link.
  struct Crossing {
    TileId destination = 0;
    Bytes bytes = 0;
    std::vector<FlowId> flows;  ///< most bytes first
  };
  struct LinkLoad {
    Bytes bytes = 0;  ///< plain ones
    LinkId link = 0;
    /// Whether it comes after another in the heap.
    bool operator<(const LinkLoad& other) const {
      return bytes != other.bytes ? bytes < other.bytes : link > other.link;
    }
  };
  /// How a search reached the end of a link.
  struct Label {
    std::uint32_t search = 0;  ///< the search that wrote it
    int hops = 0;
    Bytes largest = 0;  ///< load on the way in plain bytes, the flow included
    LinkId before = 0;
  };

  /// In plain bytes: what links of different bandwidth compare in.
  Bytes load(LinkId link) const { return mesh_.plain_bytes(link, loads_[link]); }
  /// The most loaded link, the first of several; nothing when no link is loaded.
  std::optional<LinkId> hottest();
  void set_load(LinkId link, Bytes bytes);
  bool relieve(LinkId hottest);
  bool relieve_every_link();
  std::vector<Crossing> crossings(LinkId link) const;
  bool move(TileId destination, const std::vector<FlowId>& flows, Bytes below);
  bool lay_anew(TileId destination, const std::vector<FlowId>& flows, Bytes below);
  void lift(FlowId id);
  void lay(FlowId id, Path path);
  void claim(const Path& path);

  std::optional<Path> find_path(const Flow& flow, Bytes below);
  void reach(const Flow& flow, LinkId link, const Label* from, LinkId before, Bytes below);
  OutputSet outputs(TileId tile) const;
  Path path_to(LinkId last, TileId source) const;
  bool visits_twice(const Path& path);

  std::optional<HopRow> complete(TileId destination);
  void measure_parts();
  bool claimed(TileId tile) const { return claim_epoch_[tile] == epoch_; }

  const Mesh& mesh_;
  const TurnSets& turns_;
  std::vector<TileId> target_;            ///< by link
  std::vector<Coord> coords_;             ///< by tile
  std::vector<std::uint32_t> part_size_;  ///< by tile: live tiles that are connected with it

  std::vector<Flow> flows_;
  std::map<TileId, std::vector<FlowId>> flows_to_;
  std::vector<std::vector<FlowId>> flows_on_;  ///< by link
  LinkBytes loads_;
  /// A heap of loads that links have or had, the largest on top; those that are not current any more are
  /// dropped when they come up.
  std::vector<LinkLoad> heap_;
  std::map<TileId, HopRow> rows_;

  // What the move under way has fixed: the output of tiles on routes to its destination.
  std::uint32_t epoch_ = 0;
  std::vector<std::uint32_t> claim_epoch_;
  std::vector<Direction> claim_out_;

  // Search.
  std::uint32_t search_ = 0;
  std::vector<Label> labels_;  ///< by link
  std::vector<LinkId> next_frontier_;
  std::vector<std::uint32_t> visited_;  ///< by tile
  std::uint32_t visit_ = 0;
  std::uint64_t work_ = 0;  ///< links looked at
  std::uint64_t work_end_;
};

}  // namespace wafersim::topology
