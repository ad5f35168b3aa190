#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "topology/routing.h"

namespace wafersim::topology {

/// What a set of link loads comes to. Smaller is better: by the largest load, then by the hops.
struct LoadSummary {
  Bytes largest = 0;    ///< bytes on the most loaded link, as plain ones (Mesh::plain_bytes())
  Bytes byte_hops = 0;  ///< sum over all links of their bytes, which is bytes x hops over the demands
  auto operator<=>(const LoadSummary&) const = default;
};

/// Bytes by link slot (LinkId).
using LinkBytes = std::vector<Bytes>;
LoadSummary summarize(const LinkBytes& loads, const Mesh& mesh);

/// Loads that need not be whole bytes.
struct ExpectedLoads {
  LinkBytes parts;  ///< by link slot, in units of 1 / parts_per_byte bytes
  Bytes parts_per_byte = 1;
};

/// Adds up what demands load their routes with. Time of a demand: its hops, or constant where all routes are
/// straight (Routing::straight_first()); of loads(): the links.
class LoadMeter {
 public:
  /// Both must outlive the meter.
  LoadMeter(const Routing& routing, const Mesh& mesh);

  /// False when the demand has no live route; links up to where it is blocked are then loaded.
  bool add(const Demand& demand);
  const LinkBytes& loads();
  void clear();

 private:
  void add_straight(const Demand& demand);
  void add_run(Direction direction, int line, int from, int to, Bytes bytes);

  const Routing& routing_;
  const Mesh& mesh_;
  std::optional<Dimension> straight_first_;
  std::vector<Coord> coords_;  ///< by tile
  int rows_, cols_;
  /// Straight runs, by direction: what changes from one link to the next along each row or column.
  std::array<std::vector<Bytes>, kPlainDirections> changes_;
  std::size_t longest_;                         ///< hops that a route may have
  LinkBytes loads_;
};

/// The bytes that each link carries when every demand takes its route.
/// Throws PlanError, as route() does, when a demand has no live route.
LinkBytes link_loads(const Routing& routing, const Mesh& mesh, const Demands& demands);

/// A load, as plain bytes, that some link has whatever the routes, minimal or not: the largest, over the cuts
/// that part the first rows or columns from the others and the cuts around single tiles, of the bytes that must
/// cross a cut one way divided by the bandwidth of its live links, rounded up. 0 for a cut without live links.
Bytes cut_bound(const Mesh& mesh, const Demands& demands);

/// Of those cuts the one with the most bytes for its bandwidth, the first among equals: between columns or rows, then
/// out of tiles, then into tiles.
struct BusiestCut {
  Bytes bytes = 0;
  Rational rate{1};  ///< bandwidth of its live links, in plain links
  std::string name;  ///< "links from column 3 to 4", "links out of tile_0_0"; empty when no link is needed
};
BusiestCut busiest_cut(const Mesh& mesh, const Demands& demands);

}  // namespace wafersim::topology
