#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/compiled_trace.h"
#include "sim/packet_routes.h"
#include "topology/mesh.h"

namespace wafersim::sim {

/// A link of the first replica in another one, in which its tiles are `moved`.
inline topology::LinkId moved_link(topology::LinkId link, const std::vector<TileId>& moved) {
  return topology::Mesh::link(moved[topology::Mesh::link_source(link)], topology::Mesh::link_direction(link));
}

/// Whether the replicas of a plan do the same until they meet, and when that is. Proven from the trace, the mesh and the routes:
/// the tiles of each replica are those of the first moved by one vector; their programs, peers, memory and routes are the
/// first one's, moved likewise, up to the first step in which a tile has to do with another replica; no route up to then
/// leaves the tiles of its replica; no DRAM is shared between replicas.
class Replicas {
 public:
  Replicas(const CompiledTrace& trace, const models::HardwareModel& hardware, const topology::Mesh& mesh,
           const PacketRoutes& routes);

  /// Empty when they do; otherwise why not.
  const std::string& obstacle() const { return obstacle_; }

  int count() const { return static_cast<int>(tiles_.size()); }
  /// Used tiles of a replica, ascending; those of all stand in the same order.
  const std::vector<TileId>& tiles(std::size_t replica) const { return tiles_[replica]; }
  /// What each tile of the first replica is in another one, and corners of dies likewise; by tile.
  std::vector<TileId> moved(std::size_t replica) const;
  /// The step of a tile of the first replica that opens at least a cycle before any other replica is met; ~0 when none is.
  std::uint32_t last_alone(TileId tile) const { return last_alone_[tile]; }

 private:
  struct Vector {
    int x = 0;
    int y = 0;
  };
  bool collect_tiles();
  bool compare();
  bool compare_tile(std::size_t place);
  bool same_step(const workloads::TileBinding& a, const workloads::TileBinding& b, std::uint32_t step) const;
  /// The first step with a peer outside the replica; the number of steps when there is none.
  std::uint32_t first_meeting(const workloads::TileBinding& binding);
  bool meets(const workloads::TileBinding& binding, std::uint32_t step_template) const;
  bool takes_time(const workloads::Step& step) const;
  bool find_last_alone(const workloads::TileBinding& binding, std::uint32_t meeting);
  bool compare_peers(const workloads::TileBinding& binding, const std::vector<bool>& templates_used, std::size_t place);
  bool compare_route(TileId source, TileId destination);
  bool compare_drams();
  bool refuse(std::string why);
  const workloads::TileBinding& binding_of(TileId tile) const { return *bindings_[tile]; }
  TileId move(TileId tile, std::size_t replica) const;

  const CompiledTrace& compiled_;
  const workloads::Trace& trace_;
  const models::HardwareModel& hardware_;
  const topology::Mesh& mesh_;
  const PacketRoutes& routes_;
  std::string obstacle_;
  std::vector<std::vector<TileId>> tiles_;
  std::vector<Vector> vectors_;
  std::vector<const workloads::TileBinding*> bindings_;  ///< by tile; null where nothing runs
  std::vector<std::uint32_t> last_alone_;                ///< by tile
};

}  // namespace wafersim::sim
