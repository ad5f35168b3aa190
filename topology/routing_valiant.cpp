#include <algorithm>
#include <limits>

#include "base/error.h"
#include "topology/blocked_way.h"
#include "topology/link_loads.h"
#include "topology/live_turns.h"
#include "topology/pair_loads.h"
#include "topology/routing.h"
#include "topology/routing_policies.h"

namespace wafersim::topology {
namespace {

/// First to the router of a live tile drawn uniformly, in class 0, then to the destination, in class 1 (Valiant and Brebner
/// 1981): any traffic becomes twice uniform traffic at worst. Both ways are those of `xy`, on meshes with
/// faults those of `table`.
class ValiantRouting final : public RoutingPolicy {
 public:
  explicit ValiantRouting(const Mesh& mesh)
      : base_(mesh.has_faults() ? make_table_routing(mesh) : make_xy_routing(mesh)) {
    for (TileId tile = 0; tile < mesh.tile_count(); ++tile) {
      if (mesh.alive(tile)) live_.push_back(mesh.router(tile));
    }
    for (const TileId tile : live_) {
      if (base_->next(tile, live_[0]) == Hop::unreachable)
        throw blocked_way(*this, mesh, tile, live_[0], std::nullopt);
    }
  }

  const std::string& name() const override {
    static const std::string text = "valiant";
    return text;
  }
  unsigned vc_classes() const override { return 2; }
  bool draws() const override { return true; }

  /// The upper half of the draw, scaled to the live tiles: of n, none is likelier than another by more than
  /// 2^-32.
  Travel depart(TileId source, TileId destination, std::uint64_t draw) const override {
    if (source == destination) return {destination, 0};
    return {live_[((draw >> 32) * live_.size()) >> 32], 0};
  }
  const Routing* fixed(unsigned) const override { return base_.get(); }
  OutputSet outputs(TileId at, Hop came, const Travel& travel) const override {
    return base_->outputs(at, came, travel);
  }
  TurnSets class_turns(const Mesh& mesh, unsigned) const override { return base_->permitted_turns(mesh); }
  /// Any live tile may be the one between, and a packet may go on from there in any direction, back included.
  TurnSets handover_turns(const Mesh& mesh, unsigned from_class, unsigned) const override {
    if (from_class != 0) return TurnSets(mesh.link_slots(), 0);
    return live_turns(mesh, [](LinkId, TileId, Direction) { return true; });
  }

  /// A demand sends an n-th of its bytes to each of n tiles, and each of them sends an n-th on.
  ExpectedLoads expected_loads(const Mesh& mesh, const Demands& demands) const override {
    std::vector<Bytes> sent(mesh.tile_count(), 0), received(mesh.tile_count(), 0);
    Bytes total = 0;
    for (const Demand& demand : demands) {
      require_live_ends(*this, mesh, demand.source, demand.destination);
      if (demand.source == demand.destination) continue;
      sent[demand.source] += demand.bytes;
      received[demand.destination] += demand.bytes;
      total += demand.bytes;
    }
    if (total > 0 && total > std::numeric_limits<Bytes>::max() / (2 * live_.size()))
      throw PlanError("the traffic is too large to be added up exactly over the random ways of 'valiant'");
    return {pair_loads(*base_, mesh, sent, received), std::max<Bytes>(live_.size(), 1)};
  }
  /// The same where each tile sends and receives a byte for each other one.
  std::optional<ExpectedLoads> uniform_loads(const Mesh& mesh) const override {
    const Bytes others = live_.empty() ? 0 : live_.size() - 1;
    const std::vector<Bytes> bytes = live_bytes(mesh, others);
    return ExpectedLoads{pair_loads(*base_, mesh, bytes, bytes), others + 1};
  }

 private:
  std::unique_ptr<Routing> base_;
  std::vector<TileId> live_;  ///< routers of live tiles, one for each tile
};

}  // namespace

std::unique_ptr<RoutingPolicy> make_valiant_routing(const Mesh& mesh) {
  return std::make_unique<ValiantRouting>(mesh);
}

}  // namespace wafersim::topology
